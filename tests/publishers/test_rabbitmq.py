from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from sa_taskqueue.publishers import Failed, HeldBack, Refused, Sent
from tests.publishers.conftest import Open
from tests.publishers.live import LiveRabbitMQ
from tests.publishers.messages import all_sent, message

aio_pika = pytest.importorskip("aio_pika")


@pytest.fixture
def live(found: Callable[[str], str]) -> LiveRabbitMQ:
    return LiveRabbitMQ(found("rabbitmq"))


async def test_what_no_queue_receives_is_refused_and_holds_back_its_key(live: LiveRabbitMQ, opened: Open) -> None:
    nowhere = f"nowhere-{uuid.uuid4().hex}"
    async with live.topic() as topic, opened(live.url) as publisher:
        batch = [message(nowhere, key="a", seq=1), message(topic, key="a", seq=2), message(topic)]
        first, second, third = await publisher.publish(batch)
        assert (second, third) == (HeldBack(), Sent())
        assert isinstance(first, Refused)
        assert nowhere in first.reason
        assert len(await live.read(topic, 3)) == 1
    async with opened(f"{live.url}?mandatory=false") as publisher:
        assert all_sent(await publisher.publish([message(nowhere)]))


async def test_a_missing_exchange_refuses_and_the_next_call_works(live: LiveRabbitMQ, opened: Open) -> None:
    async with live.topic() as topic, opened(f"{live.url}?exchange={{type}}") as publisher:
        async with await aio_pika.connect(live.url) as connection:
            await (await (await connection.channel()).get_queue(topic)).bind("amq.topic", topic)
        (outcome,) = await publisher.publish([message(topic, type="no.such.exchange")])
        assert isinstance(outcome, Refused)
        assert "no.such.exchange" in outcome.reason
        assert all_sent(await publisher.publish([message(topic, type="amq.topic")]))


async def test_an_exchange_routes_by_topic(live: LiveRabbitMQ, opened: Open) -> None:
    exchange = f"x{uuid.uuid4().hex}"
    async with live.topic() as queue, await aio_pika.connect(live.url) as connection:
        channel = await connection.channel()
        declared = await channel.declare_exchange(exchange, "topic")
        await (await channel.get_queue(queue)).bind(declared, "orders.*")
        async with opened(f"{live.url}?exchange={exchange}&routing_key={{topic}}.{{key}}") as publisher:
            outcomes = await publisher.publish([message("orders", key="7"), message("bills", key="7")])
        await declared.delete()
        assert [type(outcome) for outcome in outcomes] == [Sent, Refused]
        assert len(await live.read(queue, 2)) == 1


async def test_a_full_queue_that_rejects_is_a_failure_that_may_pass(live: LiveRabbitMQ, opened: Open) -> None:
    name = f"full{uuid.uuid4().hex}"
    async with await aio_pika.connect(live.url) as connection:
        channel = await connection.channel()
        limits = {"x-max-length": 1, "x-overflow": "reject-publish"}
        queue = await channel.declare_queue(name, arguments=limits)
        async with opened(live.url) as publisher:
            outcomes = [(await publisher.publish([message(name)]))[0] for _ in range(3)]
        await queue.delete(if_unused=False, if_empty=False)
    assert Failed in {type(outcome) for outcome in outcomes}
    assert Refused not in {type(outcome) for outcome in outcomes}


async def test_a_routing_key_that_is_too_long_is_refused(live: LiveRabbitMQ, opened: Open) -> None:
    async with opened(live.url) as publisher:
        (outcome,) = await publisher.publish([message("x" * 256)])
    assert isinstance(outcome, Refused)


async def test_what_the_client_cannot_pack_fails_alone(live: LiveRabbitMQ, opened: Open) -> None:
    """AMQP has 255 bytes for the type, and the outbox 255 characters."""
    async with live.topic() as topic, opened(live.url) as publisher:
        batch = [message(topic), message(topic, type="é" * 200), message(topic)]
        first, second, third = await publisher.publish(batch)
        assert (first, third) == (Sent(), Sent())
        assert isinstance(second, Failed)
        assert len(await live.read(topic, 2)) == 2
