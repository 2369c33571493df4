from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from sa_taskqueue.publishers import CallablePublisher, Failed, HeldBack, Message, Outcome, Refused, Sent
from tests.publishers.messages import keyed, message

BATCH = keyed("orders", 2, 2)


class Taker:
    """Takes messages in each of the four shapes; the second of the first key goes wrong."""

    def __init__(self) -> None:
        self.taken: list[Message] = []
        self.threads: set[int] = set()

    def one(self, each: Message) -> Outcome | None:
        self.threads.add(threading.get_ident())
        if each.key == "key-0" and each.seq == 1:
            raise ConnectionError("line is busy")
        self.taken.append(each)
        return None if each.seq == 1 else Sent()

    async def one_async(self, each: Message) -> Outcome | None:
        return self.one(each)

    def batch(self, messages: Sequence[Message]) -> Sequence[Outcome | None]:
        def outcome(each: Message) -> Outcome | None:
            try:
                return self.one(each)
            except ConnectionError as error:
                return Failed(f"ConnectionError: {error}")

        return [outcome(each) for each in messages]

    async def batch_async(self, messages: Sequence[Message]) -> Sequence[Outcome | None]:
        return self.batch(messages)


@pytest.mark.parametrize("name", ["one", "one_async", "batch", "batch_async"])
async def test_each_shape_of_function(name: str) -> None:
    taker = Taker()
    publisher = CallablePublisher(getattr(taker, name), batch=name.startswith("batch"))
    await publisher.open()
    outcomes = await publisher.publish(BATCH)
    await publisher.close()
    assert outcomes == [Failed("ConnectionError: line is busy"), Sent(), HeldBack(), Sent()]
    assert {each.key for each in taker.taken} >= {"key-1"}
    assert (threading.get_ident() in taker.threads) == name.endswith("async"), "a sync function blocked the loop"


async def test_what_the_function_returns_is_the_outcome() -> None:
    async def refuse(each: Message) -> Outcome:
        return Refused("no room")

    async def nonsense(each: Message) -> str:
        return "ok"

    async def too_few(messages: Sequence[Message]) -> list[None]:
        return [None]

    two = [message(), message()]
    assert await CallablePublisher(refuse).publish(two) == [Refused("no room")] * 2
    (wrong, _) = await CallablePublisher(nonsense).publish(two)
    assert isinstance(wrong, Failed)
    assert "str" in wrong.reason
    (wrong, _) = await CallablePublisher(too_few, batch=True).publish(two)
    assert isinstance(wrong, Failed)
    assert "2 outcomes" in wrong.reason


async def test_one_that_hangs_fails_after_the_bounded_time_and_the_others_are_sent() -> None:
    async def send(each: Message) -> None:
        if each.key == "key-0":
            await asyncio.Event().wait()

    outcomes = await CallablePublisher(send, timeout=0.3).publish(BATCH)
    # Whether the second of the other key still had its turn is not promised.
    assert [type(outcome) for outcome in outcomes[:3]] == [Failed, Sent, HeldBack]
    assert isinstance(outcomes[0], Failed)
    assert "0.3 s" in outcomes[0].reason


async def test_a_slow_sync_function_keeps_what_it_has_done_and_is_not_called_by_two() -> None:
    hanging, released = threading.Event(), threading.Event()
    taken: list[int] = []

    def send(each: Message) -> None:
        taken.append(each.seq or 0)
        if len(taken) == 2:
            hanging.set()
            released.wait(60)

    publisher = CallablePublisher(send, timeout=1.5)
    messages = [message(key=f"k{number}", seq=number) for number in range(1, 5)]
    outcomes = await publisher.publish(messages)
    assert hanging.is_set()
    assert [type(outcome) for outcome in outcomes] == [Sent, Failed, Failed, Failed]

    again = asyncio.create_task(publisher.publish(messages[2:]))
    assert [type(outcome) for outcome in await again] == [Failed, Failed]  # its turn did not come
    released.set()
    patient = CallablePublisher.publish(publisher, messages[2:])
    assert [type(outcome) for outcome in await patient] == [Sent, Sent]
    assert taken == [1, 2, 3, 4]


async def test_a_cancelled_publish_leaves_no_call_behind() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def send(each: Message) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    publishing = asyncio.create_task(CallablePublisher(send).publish([message()]))
    await begun.wait()
    publishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await publishing
    assert ended.is_set()


async def test_ten_thousand_messages() -> None:
    taken: list[Message] = []

    async def send(each: Message) -> None:
        taken.append(each)

    batch = keyed("orders", 1000, 10)
    assert await CallablePublisher(send).publish(batch) == [Sent()] * 10_000
    assert len({each.id for each in taken}) == 10_000


def test_the_repr_names_the_function() -> None:
    assert repr(CallablePublisher(print)) == "CallablePublisher(print)"
