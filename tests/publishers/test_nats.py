from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from sa_taskqueue.publishers import Refused, Sent
from tests.publishers.conftest import Open
from tests.publishers.live import LiveNATS
from tests.publishers.messages import all_sent, message

nats = pytest.importorskip("nats")


@pytest.fixture
def live(found: Callable[[str], str]) -> LiveNATS:
    return LiveNATS(found("nats"))


async def test_a_subject_that_no_stream_keeps_is_refused_with_what_to_do(live: LiveNATS, opened: Open) -> None:
    nowhere = f"nowhere{uuid.uuid4().hex}"
    async with live.topic() as topic, opened(live.url) as publisher:
        first, second = await publisher.publish([message(nowhere), message(topic)])
    assert isinstance(first, Refused)
    assert nowhere in first.reason
    assert "add one" in first.reason
    assert second == Sent()


async def test_a_message_sent_twice_is_stored_once(live: LiveNATS, opened: Open) -> None:
    async with live.topic() as topic, opened(live.url) as publisher:
        twice = message(topic)
        assert all_sent(await publisher.publish([twice]))
        assert all_sent(await publisher.publish([twice]))
        client = await nats.connect(live.url)
        info = await client.jetstream().stream_info(topic)
        await client.close()
    assert info.state.messages == 1


async def test_what_is_too_large_is_refused_and_the_others_are_sent(live: LiveNATS, opened: Open) -> None:
    async with live.topic() as topic, opened(live.url) as publisher:
        client = await nats.connect(live.url)
        stream = client.jetstream()
        await stream.update_stream(name=topic, subjects=[topic], max_msg_size=1000)
        payloads = [b'"%b"' % (b"x" * size) for size in (10, 2000, 2_000_000)]
        outcomes = await publisher.publish([message(topic, payload=payload) for payload in payloads])
        await client.close()
    assert [type(outcome) for outcome in outcomes] == [Sent, Refused, Refused]


@pytest.mark.parametrize("topic", ["a b", "a.*", ">", "a..b", "a\r\nPUB b 0"])
async def test_a_topic_that_is_no_subject_is_refused(live: LiveNATS, opened: Open, topic: str) -> None:
    async with opened(live.url) as publisher:
        (outcome,) = await publisher.publish([message(topic)])
    assert isinstance(outcome, Refused)


async def test_a_header_that_would_break_the_protocol_is_refused(live: LiveNATS, opened: Open) -> None:
    async with live.topic() as topic, opened(live.url) as publisher:
        (outcome,) = await publisher.publish([message(topic, headers={"a": "b\r\nNats-Msg-Id: x"})])
    assert isinstance(outcome, Refused)
