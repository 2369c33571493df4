"""Sending in order to a broker that may lose one message and take the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from sa_taskqueue.publishers.base import HELD_BACK, Message, Outcome, Sent

SendRound = Callable[[Sequence[Message]], Awaitable[Sequence[Outcome]]]
Together = Callable[[Message, Message], bool]


def one_by_one(_first: Message, _other: Message) -> bool:
    """The second waits until the first is confirmed."""
    return False


def all_at_once(_first: Message, _other: Message) -> bool:
    """For what takes the whole of a batch, or nothing behind a gap."""
    return True


def same_topic(first: Message, other: Message) -> bool:
    """For a client that keeps the order by itself, but only within a topic."""
    return first.topic == other.topic


async def in_rounds(
    messages: Sequence[Message], send: SendRound, *, together: Together = one_by_one
) -> Sequence[Outcome]:
    """Send the first of each key and what has no order; once they are confirmed, the next of each key, and so on.

    ``together`` lets a round take several of one key. After one that was not confirmed, the rest of its key is held
    back.
    """
    outcomes: list[Outcome] = [HELD_BACK] * len(messages)
    unordered: list[int] = []
    waiting: dict[str, deque[int]] = {}
    for place, message in enumerate(messages):
        key = message.ordered_by
        if key is None:
            unordered.append(place)
        else:
            waiting.setdefault(key, deque()).append(place)
    while unordered or waiting:
        heads = [_head(messages, places, together) for places in waiting.values()]
        round_ = sorted([*unordered, *(place for head in heads for place in head)])
        unordered = []
        for place, outcome in zip(round_, await send([messages[place] for place in round_]), strict=True):
            outcomes[place] = outcome
        for key, head in zip(list(waiting), heads, strict=True):
            if not _confirmed(outcomes, head) or not waiting[key]:
                del waiting[key]
    return outcomes


def _head(messages: Sequence[Message], places: deque[int], together: Together) -> list[int]:
    """The places that go out now, taken from those that wait."""
    head = [places.popleft()]
    while places and together(messages[head[0]], messages[places[0]]):
        head.append(places.popleft())
    return head


def _confirmed(outcomes: list[Outcome], head: list[int]) -> bool:
    """Whether all of a key's round was; what the client took behind a gap counts as held back, and goes out again."""
    for at, place in enumerate(head):
        if not isinstance(outcomes[place], Sent):
            for later in head[at + 1 :]:
                outcomes[later] = HELD_BACK
            return False
    return True
