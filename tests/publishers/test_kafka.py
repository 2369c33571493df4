from __future__ import annotations

from collections.abc import Callable

import pytest

from sa_taskqueue.publishers import HeldBack, Refused, Sent
from tests.publishers.conftest import Open
from tests.publishers.live import LiveKafka
from tests.publishers.messages import message

pytest.importorskip("confluent_kafka")


@pytest.fixture
def live(found: Callable[[str], str]) -> LiveKafka:
    return LiveKafka(found("kafka"))


async def test_what_is_too_large_is_refused_and_holds_back_its_key(live: LiveKafka, opened: Open) -> None:
    large = b'"%b"' % (b"x" * 20_000)
    async with live.topic() as topic, opened(f"{live.url}?message.max.bytes=10000") as publisher:
        batch = [
            message(topic, key="a", seq=1),
            message(topic, key="a", seq=2, payload=large),
            message(topic, key="a", seq=3),
            message(topic, key="b", seq=1),
        ]
        outcomes = await publisher.publish(batch)
        assert [type(outcome) for outcome in outcomes] == [Sent, Refused, HeldBack, Sent]
        arrived = await live.read(topic, 2)
        assert [each.headers["sa-taskqueue-id"] for each in arrived] == [str(batch[0].id), str(batch[3].id)]
        (again,) = await publisher.publish([batch[2]])
        assert again == Sent()


async def test_a_key_without_order_is_sent_past_a_refusal(live: LiveKafka, opened: Open) -> None:
    large = b'"%b"' % (b"x" * 20_000)
    async with live.topic() as topic, opened(f"{live.url}?message.max.bytes=10000") as publisher:
        outcomes = await publisher.publish([message(topic, key="a", payload=large), message(topic, key="a")])
    assert [type(outcome) for outcome in outcomes] == [Refused, Sent]
