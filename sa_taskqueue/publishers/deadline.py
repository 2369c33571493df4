"""The bounded time of one call to `publish`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from sa_taskqueue.publishers.base import Failed, Message, Outcome


class Deadline:
    """A number of seconds from now, on the running loop's clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = asyncio.get_running_loop().time() + seconds

    @property
    def left(self) -> float:
        """Seconds, never below 0."""
        return max(0.0, self._at - asyncio.get_running_loop().time())

    @property
    def missed(self) -> Failed:
        """What becomes of a message that was not confirmed in time."""
        return Failed(f"not confirmed within {self.seconds:g} s; it may have arrived")


async def outcomes_within(
    deadline: Deadline, sending: Coroutine[Any, Any, Sequence[Outcome]], count: int
) -> Sequence[Outcome]:
    """The outcomes, or for each message that the time was over."""
    task = asyncio.create_task(sending)
    await _finished({task}, deadline)
    return [deadline.missed] * count if task.cancelled() else task.result()


async def each(
    messages: Sequence[Message],
    send: Callable[[Message], Awaitable[Outcome]],
    deadline: Deadline,
    *,
    at_once: int = 500,
) -> Sequence[Outcome]:
    """Send every message by a call of its own, ``at_once`` of them at a time; keeps what was confirmed in time.

    An exception that the publisher did not foresee is a failure of that message alone.
    """
    outcomes: list[Outcome] = [deadline.missed] * len(messages)
    left = iter(range(len(messages)))

    async def sender() -> None:
        for place in left:
            try:
                outcomes[place] = await send(messages[place])
            except Exception as error:  # noqa: BLE001 - what a client cannot pack must not fail the others
                # Without the error's text: it may hold an address with its password.
                outcomes[place] = Failed(f"{type(error).__name__} where it was to be sent")

    # Each sender takes the next message as soon as its last is confirmed: one slow answer holds up nobody else.
    senders: set[asyncio.Task[Any]] = {
        asyncio.create_task(sender()) for _ in itertools.repeat(None, min(at_once, len(messages)))
    }
    await _finished(senders, deadline)
    return outcomes


async def _finished(tasks: set[asyncio.Task[Any]], deadline: Deadline) -> None:
    """Wait for all until the time is over or one raises; none of them runs on after that."""
    try:
        await asyncio.wait(tasks, timeout=deadline.left, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
