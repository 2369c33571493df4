"""Real brokers for the tests of publishers: shared ones, and ones of a test's own behind a proxy that fails."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from sa_taskqueue.publishers import Publisher, publisher_for
from tests.publishers.live import LIVE, Live
from tests.servers.base import Unavailable
from tests.servers.broker import Broker
from tests.servers.brokers import BROKERS
from tests.servers.kafka import KafkaBroker
from tests.tcp_proxy import TcpProxy

CLIENTS = {"kafka": "confluent_kafka", "rabbitmq": "aio_pika", "nats": "nats", "valkey": "redis"}

Open = Callable[..., contextlib.AbstractAsyncContextManager[Publisher]]


@pytest.fixture(scope="session")
def found(pytestconfig: pytest.Config) -> Iterator[Callable[[str], str]]:
    """The URL of a broker that all tests of this process share; what had to be started ends with it."""
    own = {name: type(broker)() for name, broker in BROKERS.items()}
    urls: dict[str, str] = {}

    def find(name: str) -> str:
        pytest.importorskip(CLIENTS[name])
        if name not in urls:
            urls[name] = available(pytestconfig, own[name].find)
        return urls[name]

    yield find
    for broker in own.values():
        broker.stop()


@pytest.fixture(params=list(LIVE))
def live(request: pytest.FixtureRequest, found: Callable[[str], str]) -> Live:
    """Each kind of broker in turn."""
    return LIVE[request.param](found(request.param))


@pytest.fixture
def opened() -> Open:
    """Open a publisher, and close it at the end."""

    @contextlib.asynccontextmanager
    async def opened(url: str, **options: Any) -> AsyncIterator[Publisher]:
        publisher = publisher_for(url, **options)
        try:
            await publisher.open()
            yield publisher
        finally:
            await publisher.close()

    return opened


class Behind:
    """A broker of the test's own, reached through a proxy."""

    def __init__(self, broker: Broker, proxy: TcpProxy) -> None:
        self._broker = broker
        self.proxy = proxy
        self.url = broker.url(proxy.port)
        self.restart()

    def kill(self) -> None:
        self._broker.kill()

    def restart(self) -> None:
        """Another process; the clients find it at the proxy."""
        started = self._broker.start(self.proxy.port) if isinstance(self._broker, KafkaBroker) else self._broker.start()
        self.direct = started
        self.proxy.retarget(int(started.rpartition(":")[2]))


@pytest.fixture(params=list(LIVE))
def behind(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Behind]:
    pytest.importorskip(CLIENTS[request.param])
    broker = type(BROKERS[request.param])()
    with TcpProxy("127.0.0.1", 1) as proxy:
        try:
            yield available(pytestconfig, lambda: Behind(broker, proxy))
        finally:
            broker.stop()


def available(config: pytest.Config, start: Callable[[], Any]) -> Any:
    try:
        return start()
    except Unavailable as absent:
        (pytest.fail if config.getoption("--require-all-servers") else pytest.skip)(str(absent))
