from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sa_taskqueue.publishers import Failed, Refused, Sent
from tests.publishers.conftest import Open, available
from tests.publishers.live import LiveRedis
from tests.publishers.messages import all_sent, keyed, message
from tests.servers.valkey import ValkeyBroker
from tests.support import TIMEOUT

redis = pytest.importorskip("redis.asyncio")


@pytest.fixture
def live(found: Callable[[str], str]) -> LiveRedis:
    return LiveRedis(found("valkey"))


@pytest.fixture
def own(pytestconfig: pytest.Config) -> Iterator[str]:
    """A server whose settings may be changed."""
    broker = ValkeyBroker()
    yield available(pytestconfig, broker.start)
    broker.stop()


async def test_a_key_that_is_no_stream_refuses_only_its_topic(live: LiveRedis, opened: Open) -> None:
    async with live.topic() as topic, live.topic() as other, opened(live.url) as publisher:
        async with redis.Redis.from_url(live.url, socket_timeout=TIMEOUT) as client:
            await client.set(topic, "text")
        first, second = await publisher.publish([message(topic), message(other)])
    assert isinstance(first, Refused)
    assert topic in first.reason
    assert second == Sent()


async def test_a_server_out_of_memory_takes_nothing_and_later_all(own: str, opened: Open) -> None:
    async with opened(own) as publisher, redis.Redis.from_url(own, socket_timeout=TIMEOUT) as client:
        await client.config_set("maxmemory", "1")
        batch = keyed("orders", 3, 2)
        outcomes = await publisher.publish(batch)
        assert isinstance(outcomes[0], Failed)
        assert "memory" in outcomes[0].reason.lower() or "OOM" in outcomes[0].reason
        assert Sent() not in outcomes
        assert await client.exists("orders") == 0
        await client.config_set("maxmemory", "0")
        assert all_sent(await publisher.publish(batch))
        assert await client.xlen("orders") == len(batch)


async def test_a_stream_is_trimmed_to_about_its_length(live: LiveRedis, opened: Open) -> None:
    async with live.topic() as topic, opened(f"{live.url}?maxlen=100") as publisher:
        assert all_sent(await publisher.publish([message(topic, number=number) for number in range(1000)]))
        async with redis.Redis.from_url(live.url, socket_timeout=TIMEOUT) as client:
            assert 100 <= await client.xlen(topic) < 500


async def test_too_few_replicas_are_a_failure(own: str, opened: Open) -> None:
    async with opened(f"{own}?wait=1", timeout=2) as publisher:
        (outcome,) = await publisher.publish([message()])
    assert isinstance(outcome, Failed)
    assert "0 of 1 replicas" in outcome.reason
