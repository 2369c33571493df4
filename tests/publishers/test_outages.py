"""Brokers that are away, cut off, silent, killed: nothing is called sent without a confirmation, and it goes on."""

from __future__ import annotations

import asyncio

import pytest

from sa_taskqueue.exceptions import BrokerUnavailable
from sa_taskqueue.publishers import Failed, Message, Outcome, Publisher, Refused, Sent, publisher_for
from tests.publishers.conftest import Behind
from tests.publishers.live import LIVE, Live
from tests.publishers.messages import keyed, message
from tests.support import eventually_async

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def live_of(behind: Behind) -> Live:
    (kind,) = [kind for kind in LIVE.values() if behind.direct.startswith(type_of(kind))]
    return kind(behind.direct)


def type_of(kind: type[Live]) -> str:
    return {"kafka": "kafka", "rabbitmq": "amqp", "nats": "nats", "valkey": "redis"}[kind.name]


async def sent_in_the_end(publisher: Publisher, messages: list[Message]) -> None:
    """As a relay does: again what was not sent, until all is."""
    left = list(messages)

    async def attempt() -> bool:
        outcomes = await publisher.publish(left)
        assert not [outcome for outcome in outcomes if isinstance(outcome, Refused)], outcomes
        left[:] = [each for each, outcome in zip(left, outcomes, strict=True) if not isinstance(outcome, Sent)]
        return not left

    await eventually_async(attempt)


async def test_it_lives_through_every_outage(behind: Behind) -> None:
    """One broker for all of them: starting one takes seconds."""
    publisher = publisher_for(behind.url, timeout=5)
    behind.proxy.set_mode("cut")
    with pytest.raises(BrokerUnavailable):
        await publisher.open()
    assert {type(outcome) for outcome in await publisher.publish([message()])} == {Failed}
    behind.proxy.set_mode("ok")
    async with live_of(behind).topic() as topic:
        batch = keyed(topic, 3, 5)
        await sent_in_the_end(publisher, batch)
        await _cut_off(behind, publisher, topic)
        await _silent(behind, publisher, topic)
    behind.kill()
    await asyncio.to_thread(behind.restart)
    async with live_of(behind).topic() as topic:
        after = keyed(topic, 3, 5)
        await sent_in_the_end(publisher, after)
        arrived = await live_of(behind).read(topic, len(after))
        assert {each.headers["sa-taskqueue-id"] for each in arrived} >= {str(each.id) for each in after}
    await publisher.close()


async def _cut_off(behind: Behind, publisher: Publisher, topic: str) -> None:
    """The broker takes them, its answers are lost, the connection breaks: sent again, they arrive twice at most."""
    batch = keyed(topic, 3, 5)
    behind.proxy.set_mode("drop_replies")
    publishing: asyncio.Task[list[Outcome]] = asyncio.create_task(_publish(publisher, batch))
    await asyncio.sleep(0)
    behind.proxy.set_mode("cut")
    outcomes = await publishing
    assert not [outcome for outcome in outcomes if isinstance(outcome, Sent)]
    behind.proxy.set_mode("ok")
    await sent_in_the_end(publisher, batch)


async def _silent(behind: Behind, publisher: Publisher, topic: str) -> None:
    """No answer and no error: the call ends all the same."""
    batch = keyed(topic, 3, 5)
    behind.proxy.set_mode("blackhole")
    outcomes = await publisher.publish(batch)
    assert Sent not in {type(outcome) for outcome in outcomes}
    # What waits in the proxy's connections must not come out later.
    behind.proxy.set_mode("cut")
    behind.proxy.set_mode("ok")
    await sent_in_the_end(publisher, batch)


async def _publish(publisher: Publisher, batch: list[Message]) -> list[Outcome]:
    return list(await publisher.publish(batch))
