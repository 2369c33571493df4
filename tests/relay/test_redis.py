"""The relay with Redis Streams: confirmed before it is marked, cut in the middle, down at the start, refusing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Engine

from sa_taskqueue import KeyStatus, MessageStatus
from tests.relay.support import Outbox, drain, running, violations
from tests.relay.test_relay import relay
from tests.servers.base import Unavailable
from tests.servers.brokers import BROKERS
from tests.servers.process import free_port
from tests.support import eventually
from tests.tcp_proxy import TcpProxy

redis = pytest.importorskip("redis")
pytest.importorskip("sa_taskqueue.publishers.redis")


@pytest.fixture
def broker_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of a Redis or Valkey; one that is absent fails the test with --require-all-servers."""
    broker = BROKERS["valkey"]
    try:
        yield broker.find()
    except Unavailable as absent:
        (pytest.fail if pytestconfig.getoption("--require-all-servers") else pytest.skip)(str(absent))
    finally:
        broker.stop()


@pytest.fixture
def stream(broker_url: str) -> Iterator[Any]:
    """A stream of this test's own: its name, and what is in it."""
    client = redis.Redis.from_url(broker_url)
    yield Stream(client, f"relay-test-{uuid.uuid4().hex}")
    client.close()


class Stream:
    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name

    def entries(self) -> list[dict[str, str]]:
        return [
            {name.decode(): value.decode() for name, value in fields.items()}
            for _, fields in self.client.xrange(self.name)
        ]

    def numbers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for entry in self.entries():
            if "sa-taskqueue-seq" in entry:
                found.setdefault(entry["sa-taskqueue-key"], []).append(int(entry["sa-taskqueue-seq"]))
        return found


def test_messages_arrive_with_what_makes_a_duplicate_known(
    relay_engine: Any, outbox: Outbox, broker_url: str, stream: Stream
) -> None:
    plain = outbox.put(stream.name, {"n": 1}, headers={"traceparent": "00-1"}, type="Made")
    keyed = [outbox.put(stream.name, n, key="k") for n in range(3)]
    drain(relay(relay_engine, broker_url))
    entries = {entry["sa-taskqueue-id"]: entry for entry in stream.entries()}
    assert entries.keys() == {str(each) for each in [plain, *keyed]}
    first = entries[str(plain)]
    assert (first["data"].replace(" ", ""), first["traceparent"], first["ce-type"]) == ('{"n":1}', "00-1", "Made")
    assert (first["ce-source"], first["ce-specversion"]) == ("/tests", "1.0")
    assert stream.numbers() == {"k": [1, 2, 3]}
    assert int(entries[str(keyed[0])]["sa-taskqueue-epoch"]) == 1
    assert outbox.statuses() == {MessageStatus.SENT: 4}
    stream.client.delete(stream.name)


def test_a_broker_that_is_down_at_the_start_costs_no_attempt(engine: Engine, outbox: Outbox, stream: Stream) -> None:
    port = free_port()
    ids = [*outbox.put_many(stream.name, 5), *outbox.put_many(stream.name, 5, key="k")]
    ran = relay(engine, f"redis://127.0.0.1:{port}", drain=False)
    with running(ran):
        eventually(lambda: ran.counts.put_off >= 10)
        ran.stop()
    assert {outbox.row(each).attempt for each in ids} == {0}
    assert outbox.key("k").fails == 0
    assert ran.counts.sent == ran.counts.failed == ran.counts.retried == 0


def test_a_connection_that_is_cut_or_silent_loses_nothing_and_keeps_the_order(
    engine: Engine, outbox: Outbox, broker_url: str, stream: Stream
) -> None:
    parts = urlsplit(broker_url)
    with TcpProxy(parts.hostname or "127.0.0.1", parts.port or 6379) as proxy:
        ran = relay(engine, f"redis://127.0.0.1:{proxy.port}?timeout=0.5", drain=False, batch=10)
        with running(ran):
            for mode in ("ok", "drop_replies", "ok", "cut", "ok", "blackhole", "ok"):
                proxy.set_mode(mode)
                for n in range(5):
                    for key in ("a", "b", None):
                        outbox.put(stream.name, n, key=key)
                before = ran.counts.claimed
                eventually(lambda before=before: ran.counts.claimed > before)
            eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 105})
            ran.stop()
    numbers = stream.numbers()
    assert {key: (violations(some), max(some)) for key, some in numbers.items()} == {"a": ([], 35), "b": ([], 35)}
    assert len({entry["sa-taskqueue-id"] for entry in stream.entries()}) == 105
    stream.client.delete(stream.name)


def test_what_the_broker_refuses_harms_no_other(
    engine: Engine, outbox: Outbox, broker_url: str, stream: Stream
) -> None:
    """A key of Redis that is no stream takes no entries."""
    stream.client.set(f"{stream.name}-text", "no stream")
    outbox.put(f"{stream.name}-text", 1, key="bad")
    outbox.put(f"{stream.name}-text", 2)
    outbox.put(stream.name, 3, key="good")
    drain(relay(engine, broker_url))
    assert outbox.key("bad").status is KeyStatus.BLOCKED
    assert "not a stream" in outbox.key("bad").error
    assert outbox.statuses() == {MessageStatus.BLOCKED: 1, MessageStatus.FAILED: 1, MessageStatus.SENT: 1}
    stream.client.delete(stream.name, f"{stream.name}-text")


def test_a_broker_that_is_down_holds_back_only_its_own_topics(
    engine: Engine, outbox: Outbox, broker_url: str, stream: Stream
) -> None:
    down = f"redis://127.0.0.1:{free_port()}"
    lost = [outbox.put("other.a", n, key="k") for n in range(3)] + outbox.put_many("other.b", 30)
    ran = relay(engine, {"other.*": down, "*": broker_url}, drain=False, batch=10)
    with running(ran):
        good = [*outbox.put_many(stream.name, 30), *outbox.put_many(stream.name, 30, key="k2")]
        eventually(lambda: outbox.statuses().get(MessageStatus.SENT) == len(good))
        ran.stop()
    assert {outbox.row(each).attempt for each in lost} == {0}
    stream.client.delete(stream.name)
