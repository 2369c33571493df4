"""The database's connections are cut while messages flow: everything leaves, and each key keeps its order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import URL, Engine, create_engine

from sa_taskqueue import MessageStatus
from tests.relay.support import Outbox, Received, running, violations
from tests.relay.test_relay import relay
from tests.support import eventually
from tests.tcp_proxy import TcpProxy

PORTS = {"postgresql": 5432, "mysql": 3306}


@pytest.fixture
def proxy(database_url: URL) -> Iterator[TcpProxy]:
    port = database_url.port or PORTS[database_url.get_backend_name()]
    with TcpProxy(database_url.host or "127.0.0.1", port) as proxy:
        yield proxy


@pytest.fixture
def proxied(url: URL, proxy: TcpProxy) -> Iterator[Engine]:
    engine = create_engine(url.set(host="127.0.0.1", port=proxy.port))
    yield engine
    engine.dispose()


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_database_that_is_cut_off_costs_no_message(proxied: Engine, proxy: TcpProxy, outbox: Outbox) -> None:
    received = Received()
    ran = relay(proxied, received, drain=False, batch=10, lease=4.0)
    ids = []
    with running(ran):
        for round_ in range(3):
            proxy.set_mode("ok")
            for n in range(10):
                ids += [outbox.put("t", n, key=key) for key in ("a", "b", None)]
            sent = 15 + 30 * round_
            eventually(lambda sent=sent: ran.counts.sent >= sent)
            proxy.set_mode("cut")
        proxy.set_mode("ok")
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 90})
        ran.stop()
    assert set(received.ids) == set(ids)
    assert {key: (violations(some), max(some)) for key, some in received.numbers().items()} == {
        "a": ([], 30),
        "b": ([], 30),
    }
