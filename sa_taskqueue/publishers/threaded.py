"""Publishers over a client that blocks: each has one thread, in which it sends one message after the other."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sa_taskqueue.publishers.base import SENT, Message, Outcome, Refused
from sa_taskqueue.publishers.connected import ConnectedPublisher
from sa_taskqueue.publishers.deadline import Deadline, outcomes_within


class ThreadedPublisher(ConnectedPublisher):
    """Subclasses say how to start, how to send one message, and how to stop; all of it in the thread."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        super().__init__(url, options)
        self._thread: ThreadPoolExecutor | None = None

    async def connect(self, deadline: Deadline) -> None:
        self._thread = ThreadPoolExecutor(1, f"sa-taskqueue-{self.address.scheme}")
        await self._run(self.start, deadline.left)

    async def disconnect(self) -> None:
        thread = self._thread
        try:
            if thread is not None:
                await self._run(self.stop)
        finally:
            self._thread = None
            if thread is not None:
                # It may hang in a dead connection: the client's own time limits end it.
                thread.shutdown(wait=False, cancel_futures=True)

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [deadline.missed] * len(messages)

        async def sending() -> Sequence[Outcome]:
            await self._run(self._all, list(messages), outcomes, time.monotonic() + deadline.left)
            return outcomes

        await outcomes_within(deadline, sending(), len(messages))
        return list(outcomes)

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _all(self, messages: list[Message], outcomes: list[Outcome], until: float) -> None:
        for place, message in enumerate(messages):
            if time.monotonic() > until:
                return
            if self._lost and place:
                outcomes[place] = self.failed(ConnectionError("the connection was lost"))
                continue
            try:
                self.send_one(message)
            except Unfit as error:
                outcomes[place] = Refused(str(error))
            except Exception as error:  # noqa: BLE001 - kombu and pika pass on what their transports raise
                outcomes[place] = self.lost(error)
            else:
                outcomes[place] = SENT

    def start(self, seconds: float) -> None:
        """Connect, within so many seconds."""
        raise NotImplementedError

    def send_one(self, message: Message) -> None:
        """Send a message and wait for its confirmation; Unfit refuses it, all else it raises may pass."""
        raise NotImplementedError

    def stop(self) -> None:
        """Close the connection."""
        raise NotImplementedError


class Unfit(Exception):
    """The message cannot be what the broker is for."""


def arguments(message: Message) -> tuple[list[Any], dict[str, Any]]:
    """The payload as the arguments of a call: an array holds the positional ones, an object the named ones."""
    try:
        payload = json.loads(message.payload)
    except ValueError:
        payload = None
    if isinstance(payload, dict):
        return [], payload
    if isinstance(payload, list):
        return payload, {}
    raise Unfit("its payload is no JSON object or array, which would be the arguments of a task")
