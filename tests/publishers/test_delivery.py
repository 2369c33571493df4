"""What every broker gets and gives out again."""

from __future__ import annotations

import json
import logging

import pytest

from sa_taskqueue import events
from sa_taskqueue.exceptions import BrokerUnavailable
from sa_taskqueue.publishers import Failed, publisher_for
from tests.publishers.conftest import Open
from tests.publishers.live import Live
from tests.publishers.messages import TIME, all_sent, keyed, message


@pytest.mark.parametrize("mode", ["binary", "structured", "off"])
async def test_a_message_arrives_whole(live: Live, opened: Open, mode: str) -> None:
    sent = message("", number=7, key="köln 5%", seq=12, headers={"shop": "north", "traceparent": "00-1-2-01"})
    async with live.topic() as topic, opened(f"{live.url}?cloudevents={mode}") as publisher:
        sent = message(topic, id=sent.id, number=7, key=sent.key, seq=12, headers=sent.headers)
        assert all_sent(await publisher.publish([sent]))
        (arrived,) = await live.read(topic, 1)
    own = {name: arrived.headers[f"sa-taskqueue-{name}"] for name in ("id", "seq", "epoch")}
    assert own == {"id": str(sent.id), "seq": "12", "epoch": "3"}
    assert arrived.key == sent.key
    assert arrived.headers["shop"] == "north"
    if mode == "off":
        assert arrived.body == sent.payload
        assert not [name for name in arrived.headers if name.lower().startswith("ce")]
        return
    read = events.read(arrived.headers, arrived.body, content_type=arrived.content_type, percent_encoded=live.encoded)
    assert (read.id, read.type, read.key, read.seq) == (str(sent.id), "order.completed", sent.key, 12)
    assert read.data == {"number": 7}
    assert read.attributes["time"] == TIME.isoformat().replace("+00:00", "Z")
    assert read.attributes["traceparent"] == "00-1-2-01"


async def test_each_key_arrives_in_its_order(live: Live, opened: Open) -> None:
    async with live.topic() as topic, opened(live.url) as publisher:
        batch = keyed(topic, 5, 20)
        assert all_sent(await publisher.publish(batch))
        arrived = await live.read(topic, len(batch))
    assert len(arrived) == len(batch)
    for key in {each.key for each in batch}:
        assert [json.loads(each.body)["number"] for each in arrived if each.key == key] == list(range(1, 21))


@pytest.mark.slow
async def test_ten_thousand_messages_at_once(live: Live, opened: Open) -> None:
    async with live.topic() as topic, opened(live.url, timeout=240) as publisher:
        batch = keyed(topic, 1000, 10)
        assert all_sent(await publisher.publish(batch))
        last = message(topic, number=-1)
        assert all_sent(await publisher.publish([last]))
        arrived = await live.read(topic, len(batch) + 1)
    assert {each.headers["sa-taskqueue-id"] for each in arrived} == {str(each.id) for each in [*batch, last]}


async def test_nothing_to_send_is_no_call(live: Live) -> None:
    assert await publisher_for(live.url).publish([]) == []


@pytest.mark.parametrize("password", ["s3cret/word", "plain-pass"])
async def test_a_wrong_password_is_never_told(live: Live, caplog: pytest.LogCaptureFixture, password: str) -> None:
    """Whether the broker refuses it or never asks: neither log nor error nor repr holds it."""
    quoted = password.replace("/", "%2F")
    url = live.url.replace("://", f"://someone:{quoted}@").replace("guest:guest@", "")
    settings = "?security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN" if live.name == "kafka" else ""
    publisher = publisher_for(url + settings, timeout=3)
    said = [repr(publisher), str(vars(publisher)["address"])]
    with caplog.at_level(logging.DEBUG):
        try:
            await publisher.open()
        except BrokerUnavailable as error:
            said += [str(error), repr(error), repr(error.__cause__), str(error.fields)]
        outcomes = await publisher.publish([message()])
        await publisher.close()
    if live.name in ("rabbitmq", "valkey"):
        assert isinstance(outcomes[0], Failed)
    assert not [text for text in [*said, repr(outcomes), caplog.text] if password in text or quoted in text]
