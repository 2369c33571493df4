"""An operator looks at the outbox, sends again what was sent, and frees what was given up."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from sqlalchemy import Engine

from sa_taskqueue import KeyStatus, MessageStatus
from sa_taskqueue.control import OutboxControl
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.base import Message, Outcome, Refused, Sent
from tests.outbox.models import captured, queue
from tests.relay.support import Outbox, Received, drain, violations
from tests.relay.test_relay import relay

T = TypeVar("T")


def controlled(engine: Any, action: Callable[[OutboxControl], Awaitable[T]]) -> T:
    async def run() -> T:
        async with OutboxControl(queue, engine) as control:
            return await action(control)

    return asyncio.run(run())


def test_what_was_sent_is_sent_again_under_its_ids_and_numbers(engine: Engine, outbox: Outbox) -> None:
    received = Received()
    plain = outbox.put_many("t.plain", 3)
    keyed = [outbox.put("t.keyed", n, key=key) for n in range(3) for key in ("a", "b")]
    drain(relay(engine, received))
    epochs = outbox.row(plain[0]).epoch, outbox.key("a").epoch
    assert controlled(engine, lambda control: control.replay(topic="t.*")) == 9
    assert outbox.statuses() == {MessageStatus.NEW: 3, MessageStatus.QUEUED: 6}
    assert (outbox.row(plain[0]).epoch, outbox.key("a").epoch) > epochs
    later = outbox.put("t.keyed", "later", key="a")
    drain(relay(engine, received))
    assert sorted(received.ids) == sorted([*plain, *plain, *keyed, *keyed, later])
    assert received.numbers() == {"a": [1, 2, 3, 1, 2, 3, 4], "b": [1, 2, 3, 1, 2, 3]}
    assert {key: violations(some) for key, some in received.numbers().items()} == {"a": [], "b": []}
    assert outbox.key_statuses() == {KeyStatus.IDLE: 2}


def test_a_replay_is_limited_by_time_topic_and_key(engine: Engine, outbox: Outbox) -> None:
    for topic, key in (("one", "a"), ("two", "a"), ("one", "b"), ("one", "a")):
        outbox.put(topic, 1, key=key)
    drain(relay(engine, Received()))
    assert controlled(engine, lambda control: control.replay(since=dt.timedelta(0))) == 0
    before = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert controlled(engine, lambda control: control.replay(until=before)) == 0
    assert controlled(engine, lambda control: control.replay(topic="one", key="a", since=dt.timedelta(days=1))) == 2
    received = Received()
    drain(relay(engine, received))
    assert received.numbers() == {"a": [1, 3]}
    assert outbox.key("a").sent_seq == 3


def test_a_blocked_key_and_failed_messages_are_driven_again(engine: Engine, outbox: Outbox) -> None:
    def refuse(_message: Message) -> Outcome:
        return Refused("too large")

    ids = [outbox.put("t", 1), outbox.put("t", 2, key="k"), outbox.put("t", 3, key="k")]
    drain(relay(engine, refuse))
    assert outbox.statuses() == {MessageStatus.FAILED: 1, MessageStatus.BLOCKED: 1, MessageStatus.QUEUED: 1}
    statistics = controlled(engine, lambda control: control.statistics())
    assert statistics.keys == {KeyStatus.BLOCKED: 1}
    [blocked] = controlled(engine, lambda control: control.blocked())
    assert (blocked.key, blocked.message_id, blocked.seq, blocked.waiting, blocked.fails) == ("k", ids[1], 1, 1, 1)
    assert "too large" in (blocked.error or "")
    assert controlled(engine, lambda control: control.redrive()) == 2
    received = Received()
    drain(relay(engine, received))
    assert sorted(received.ids) == sorted(ids)
    assert received.numbers() == {"k": [1, 2]}


def test_a_dead_letter_that_is_driven_again_takes_a_new_number(engine: Engine, outbox: Outbox) -> None:
    def pick(message: Message) -> Outcome:
        return Refused("no") if message.payload == b"0" else Sent()

    ids = outbox.put_many("t", 2, key="k")
    drain(relay(engine, pick, after_limit="dead_letter"))
    assert controlled(engine, lambda control: control.redrive(key="k")) == 1
    received = Received()
    drain(relay(engine, received))
    assert [(each.id, each.seq) for each in received.messages] == [(ids[0], 3)]


def test_bad_input_is_refused(engine: Engine, outbox: Outbox) -> None:
    with pytest.raises(InvalidSetting, match="since"):
        controlled(engine, lambda control: control.replay(since=dt.datetime(2026, 1, 1)))  # noqa: DTZ001 - refused
    with pytest.raises(InvalidSetting, match="OutboxMixin"):
        OutboxControl(captured, engine)
