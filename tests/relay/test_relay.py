"""The relay: each message leaves at least once, those of one key in the order of their commits."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, insert, update

from sa_taskqueue import KeyStatus, MessageStatus, fixed, never, new_id
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.publishers.base import Failed, Message, Outcome, Refused, Sent
from sa_taskqueue.publishers.callable import CallablePublisher
from sa_taskqueue.relay import Relay
from sa_taskqueue.relay.judging import TOMBSTONE
from tests.outbox.models import queue
from tests.relay.support import KEYS, MESSAGES, Outbox, Received, drain, running, violations
from tests.support import eventually

SOON = fixed(0.01, max_attempts=3)


def relay(engine: Any, to: Any, **options: Any) -> Relay:
    return Relay(queue, engine, to=to, **{"drain": True, "retry": SOON, "poll_max": 0.2, **options})


def test_everything_leaves_and_is_marked(relay_engine: Any, outbox: Outbox) -> None:
    received = Received()
    plain = outbox.put_many("plain", 70)
    keyed = [outbox.put("keyed", n, key=f"k{n % 7}", type="made", headers={"a": "é"}) for n in range(70)]
    loose = outbox.put("loose", 1, key="k1", ordered=False)
    ran = drain(relay(relay_engine, received, batch=20))
    assert sorted(received.ids) == sorted([*plain, *keyed, loose])
    assert received.numbers() == {f"k{n}": list(range(1, 11)) for n in range(7)}
    assert outbox.statuses() == {MessageStatus.SENT: 141}
    assert outbox.key_statuses() == {KeyStatus.IDLE: 7}
    assert (ran.counts.claimed, ran.counts.sent, ran.counts.lost) == (141, 141, 0)
    message = next(each for each in received.messages if each.id == keyed[8])
    assert (message.topic, message.type, message.key, message.seq) == ("keyed", "made", "k1", 2)
    assert (message.payload, message.headers, message.source) == (b"8", {"a": "é"}, "/tests")
    row = outbox.row(keyed[8])
    assert message.time == row.created_at
    assert row.attempt == 1
    assert row.sent_at is not None
    assert outbox.key("k1").sent_seq == 10


def test_what_is_not_confirmed_is_not_marked_and_goes_out_again(relay_engine: Any, outbox: Outbox) -> None:
    seen: Counter[bytes] = Counter()

    def unsure(message: Message) -> Outcome:
        seen[message.payload] += 1
        return Sent() if message.payload != b"3" or seen[b"3"] == 3 else Failed("no answer")

    outbox.put_many("plain", 6)
    ran = relay(relay_engine, unsure, drain=False)
    with running(ran):
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 6})
        ran.stop()
    assert seen == {b"3": 3, **{str(n).encode(): 1 for n in range(6) if n != 3}}
    assert (ran.counts.retried, ran.counts.sent) == (2, 6)


def test_a_message_without_a_key_fails_after_the_last_attempt_and_harms_no_other(
    relay_engine: Any, outbox: Outbox
) -> None:
    def pick(message: Message) -> Outcome:
        return {b"1": Failed("closed"), b"2": Refused("too large")}.get(message.payload, Sent())

    ids = outbox.put_many("plain", 4)
    ran = relay(relay_engine, pick, drain=False)
    with running(ran):
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 2, MessageStatus.FAILED: 2})
        ran.stop()
    failed, refused = outbox.row(ids[1]), outbox.row(ids[2])
    assert (failed.attempt, refused.attempt) == (3, 1)
    assert '"not_confirmed"' in failed.error.replace(" ", "")
    assert "closed" in failed.error
    assert '"refused"' in refused.error.replace(" ", "")
    assert ran.counts.failed == 2


def test_a_failing_head_holds_back_its_own_key_until_it_is_blocked(relay_engine: Any, outbox: Outbox) -> None:
    tried: Counter[bytes] = Counter()
    received = Received()

    def pick(message: Message) -> Outcome:
        tried[message.payload] += 1
        if message.key == "bad" and message.seq == 2:
            return Failed("not now")
        received(message)
        return Sent()

    for n in range(4):
        outbox.put("t", f"bad{n}", key="bad")
        outbox.put("t", f"good{n}", key="good")
    ran = relay(relay_engine, pick, drain=False)
    with running(ran):
        eventually(lambda: outbox.key("bad").status is KeyStatus.BLOCKED)
        late = outbox.put("t", "late", key="bad")
        other = outbox.put("t", "other", key="good")
        eventually(lambda: outbox.row(other).status is MessageStatus.SENT)
        ran.stop()
    assert received.numbers() == {"bad": [1], "good": [1, 2, 3, 4, 5]}
    assert tried[b'"bad1"'] == 3
    assert tried[b'"bad2"'] == 0
    key = outbox.key("bad")
    assert (key.sent_seq, key.fails) == (1, 3)
    assert "not now" in key.error
    assert outbox.statuses() == {MessageStatus.SENT: 6, MessageStatus.BLOCKED: 1, MessageStatus.QUEUED: 3}
    assert outbox.row(late).status is MessageStatus.QUEUED
    assert ran.counts.blocked == 1


def test_a_dead_letter_leaves_a_tombstone_and_its_key_goes_on(relay_engine: Any, outbox: Outbox) -> None:
    received = Received()

    def pick(message: Message) -> Outcome:
        if message.payload == b"1":
            return Refused("too large")
        received(message)
        return Sent()

    ids = outbox.put_many("t", 3, key="k")
    drain(relay(relay_engine, pick, after_limit="dead_letter"))
    assert received.numbers() == {"k": [1, 2, 3]}
    tombstone = received.messages[1]
    assert [received.ids[0], received.ids[2]] == [ids[0], ids[2]]
    assert tombstone.id not in ids
    assert (tombstone.payload, tombstone.headers) == (b"null", {TOMBSTONE: "true"})
    assert outbox.row(ids[1]).status is MessageStatus.FAILED
    assert "too large" in outbox.row(ids[1]).error
    assert outbox.key("k").sent_seq == 3
    assert outbox.key_statuses() == {KeyStatus.IDLE: 1}


@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("key", [None, "k"])
def test_a_row_that_commits_after_later_ones_is_not_skipped(engine: Engine, outbox: Outbox, key: str | None) -> None:
    """Where the order of the ids is not the order of the commits, a cursor over the ids would lose it."""
    received = Received()
    with outbox.factory() as slow:
        late = slow.publish("t", "late", key=key).id
        slow.flush()
        early = outbox.put("t", "early", key=key)
        rolled_back = outbox.factory()
        rolled_back.publish("t", "never", key=key)
        rolled_back.flush()
        rolled_back.rollback()
        drain(relay(engine, received))
        assert received.ids == [early]
        slow.commit()
    drain(relay(engine, received))
    assert received.ids == [early, late]
    assert key is None or received.numbers() == {"k": [1, 2]}


def test_several_relays_keep_the_order_of_each_key(relay_engine: Any, outbox: Outbox, seed: int) -> None:
    received, chance, lock = Received(), random.Random(seed), threading.Lock()

    async def slowly(messages: Sequence[Message]) -> list[Outcome]:
        """Confirms a part, in order, after a while; what it does not confirm may have arrived all the same."""
        with lock:
            pause, unsure = chance.randrange(40), {n for n in range(len(messages)) if chance.random() < 0.02}
        for _ in range(pause):
            await asyncio.sleep(0)
        received.take(messages)
        return [Failed("cut off") if n in unsure else Sent() for n in range(len(messages))]

    for _ in range(10):
        with outbox.factory.begin() as session:
            for key in range(20):
                session.publish_many([{"topic": "t", "payload": n, "key": f"k{key}"} for n in range(3)])
    many = fixed(0.001, max_attempts=1000)
    relays = [
        relay(relay_engine, CallablePublisher(slowly, batch=True), batch=40, retry=many, drain=False) for _ in range(3)
    ]
    with running(*relays):
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 600})
        for each in relays:
            each.stop()
    numbers = received.numbers()
    assert {key: violations(some) for key, some in numbers.items()} == {f"k{n}": [] for n in range(20)}
    assert {max(some) for some in numbers.values()} == {30}


def test_rows_without_a_number_get_one_in_the_order_of_their_commits(engine: Engine, outbox: Outbox) -> None:
    """Those of programs that write the row and know no more of keys than their hash."""
    received = Received()
    relays = [relay(engine, received, drain=False, poll_min=0.01, poll_max=0.02) for _ in range(3)]
    with running(*relays):
        for n in range(30):
            for key in ("a", "b"):
                row = {"id": new_id(), "topic": "t", "payload": str(n), "key": key, "key_hash": key_hash(key)}
                with outbox.engine.begin() as connection:
                    connection.execute(insert(MESSAGES), row)
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 60})
        for each in relays:
            each.stop()
    for key in ("a", "b"):
        assert [int(each.payload) for each in received.messages if each.key == key] == list(range(30))
    assert received.numbers() == {"a": list(range(1, 31)), "b": list(range(1, 31))}
    assert sum(each.counts.numbered for each in relays) == 60


def test_scheduled_messages_leave_when_they_are_due(relay_engine: Any, outbox: Outbox) -> None:
    received = Received()
    later = outbox.put("t", 1, run_after=timedelta(hours=1))
    second = outbox.put("t", 2, key="k", run_after=timedelta(seconds=0.2))
    first = outbox.put("t", 3, key="k", run_after=timedelta(seconds=0.1))
    plain = outbox.put("t", 4, run_after=timedelta(seconds=0.1))
    ran = relay(relay_engine, received, drain=False)
    with running(ran):
        eventually(lambda: outbox.statuses().get(MessageStatus.SENT) == 3)
        ran.stop()
    assert set(received.ids) == {first, second, plain}
    assert received.ids.index(first) < received.ids.index(second)
    assert outbox.row(later).status is MessageStatus.SCHEDULED


def test_sent_rows_are_deleted_at_once_or_when_they_are_old(engine: Engine, outbox: Outbox) -> None:
    received = Received()
    outbox.put_many("t", 3)
    outbox.put_many("t", 3, key="k")
    drain(relay(engine, received, keep_sent=timedelta(0)))
    assert outbox.statuses() == {}
    assert len(received.ids) == 6
    old = outbox.put("t", 1)
    drain(relay(engine, received))
    with outbox.engine.begin() as connection:
        connection.execute(update(MESSAGES).values(sent_at=outbox.row(old).sent_at - timedelta(hours=25)))
    fresh = outbox.put("t", 1)
    drain(relay(engine, received))
    ran = relay(engine, received, drain=False)
    with running(ran):
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: 1})
        ran.stop()
    assert outbox.row(fresh).status is MessageStatus.SENT


def test_what_a_dead_relay_held_is_sent_by_another(engine: Engine, outbox: Outbox) -> None:
    """The rows and the key stand as a relay left them that died, its lease over."""
    received = Received()
    plain, keyed = outbox.put("t", 1), outbox.put("t", 2, key="k")
    long_ago = outbox.row(plain).created_at - timedelta(minutes=5)
    with outbox.engine.begin() as connection:
        held = {"status": MessageStatus.RUNNING, "epoch": 1, "attempt": 1, "reserved_until": long_ago}
        connection.execute(update(MESSAGES).where(MESSAGES.c.id == plain).values(reserved_by="dead", **held))
    drain(relay(engine, received))
    assert sorted(received.ids) == sorted([plain, keyed])
    assert outbox.row(plain).epoch > 1


def test_a_relay_whose_lease_was_taken_marks_nothing(relay_engine: Any, outbox: Outbox) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slowly(message: Message) -> None:
        entered.set()
        assert go_on.wait(60)

    plain, keyed = outbox.put("t", 1), outbox.put("t", 2, key="k")
    ran = relay(relay_engine, slowly, drain=False)
    with running(ran):
        assert entered.wait(60)
        eventually(lambda: ran.counts.claimed == 2)
        with outbox.engine.begin() as connection:
            connection.execute(update(MESSAGES).values(epoch=MESSAGES.c.epoch + 1))
            connection.execute(update(KEYS).values(epoch=KEYS.c.epoch + 1))
        go_on.set()
        eventually(lambda: ran.counts.lost == 2)
        ran.stop()
    assert outbox.row(plain).status is MessageStatus.RUNNING
    assert outbox.row(keyed).status is MessageStatus.QUEUED
    assert outbox.key("k").sent_seq == 0


def test_a_stop_gives_back_what_is_on_its_way(relay_engine: Any, outbox: Outbox) -> None:
    entered = threading.Event()

    async def never_answers(message: Message) -> None:
        entered.set()
        await asyncio.Event().wait()

    ids = [outbox.put("t", 1), outbox.put("t", 2, key="k")]
    ran = relay(relay_engine, never_answers, drain=False, grace=0.05)
    with running(ran):
        assert entered.wait(60)
        eventually(lambda: ran.counts.claimed == 2)
        ran.stop()
    assert outbox.row(ids[0]).status is MessageStatus.NEW
    assert outbox.row(ids[0]).attempt == 0
    assert outbox.key("k").reserved_by is None
    received = Received()
    drain(relay(relay_engine, received))
    assert sorted(received.ids) == sorted(ids)


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 0},
        {"lease": 0.5},
        {"after_limit": "drop"},
        {"keep_sent": timedelta(seconds=-1)},
        {"keep_failed": 3},
        {"retry": 3},
        {"to": {}},
        {"to": {"": print}},
        {"name": "a\0"},
        {"poll_min": 3.0},
    ],
)
def test_bad_settings_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        Relay(queue, create_engine("sqlite:///unused.db"), **{"to": print, **options})


def test_without_an_attempt_left_a_policy_blocks_at_the_first_failure(engine: Engine, outbox: Outbox) -> None:
    outbox.put("t", 1, key="k")
    drain(relay(engine, lambda _: Failed("closed"), retry=never))
    assert outbox.key("k").status is KeyStatus.BLOCKED
