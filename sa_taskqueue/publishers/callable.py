"""Messages handed to a function of the user's own."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.base import SENT, Failed, HeldBack, Message, Outcome, Refused, Sent
from sa_taskqueue.publishers.deadline import Deadline, each, outcomes_within
from sa_taskqueue.publishers.rounds import all_at_once, in_rounds


class CallablePublisher:
    """Calls a function, sync (in a thread) or async, with one message, or with a batch of them.

    What it returns without an error is sent; it may return an `Outcome` (with ``batch=True`` a sequence of them).
    An exception is a failure that may pass. Of a batch given at once, the messages of one key may be several, in order.
    """

    def __init__(self, function: Callable[..., Any], *, batch: bool = False, timeout: float = 30.0) -> None:
        if not callable(function):
            raise InvalidSetting(setting="to", value=function, allowed="a URL, a publisher or a function")
        self._function = function
        self._batch = batch
        self._timeout = timeout
        self._one_at_a_time = threading.Lock()
        self._async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - asked is whether an object's call is a coroutine's
        )

    def __repr__(self) -> str:
        return f"CallablePublisher({getattr(self._function, '__qualname__', type(self._function).__name__)})"

    async def open(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Nothing to free."""

    async def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        deadline = Deadline(self._timeout)
        if self._batch:
            return await in_rounds(messages, functools.partial(self._send_batch, deadline), together=all_at_once)
        return await in_rounds(messages, functools.partial(self._send_each, deadline))

    async def _send_batch(self, deadline: Deadline, messages: Sequence[Message]) -> Sequence[Outcome]:
        async def call() -> Sequence[Outcome]:
            try:
                result = await self._call(messages)
            except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
                return [Failed(_text(error))] * len(messages)
            return _outcomes(result, len(messages))

        return await outcomes_within(deadline, call(), len(messages))

    async def _send_each(self, deadline: Deadline, messages: Sequence[Message]) -> Sequence[Outcome]:
        if self._async:
            return await each(messages, self._one, deadline)
        return await self._in_thread(messages, deadline)

    async def _one(self, message: Message) -> Outcome:
        try:
            return _outcome(await self._function(message))
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            return Failed(_text(error))

    async def _in_thread(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        """One after the other in one thread, as the function need not be thread-safe; keeps what was done in time."""
        outcomes: list[Outcome] = [deadline.missed] * len(messages)
        over = threading.Event()

        def call_each() -> None:
            with self._one_at_a_time:  # a call that the last time was over for may still run
                for place, message in enumerate(messages):
                    if over.is_set():
                        return
                    outcomes[place] = self._one_in_thread(message)

        calling = asyncio.create_task(asyncio.to_thread(call_each))
        try:
            await asyncio.wait({calling}, timeout=deadline.left)
        finally:
            over.set()
        return list(outcomes)

    def _one_in_thread(self, message: Message) -> Outcome:
        try:
            return _outcome(self._function(message))
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            return Failed(_text(error))

    async def _call(self, messages: Sequence[Message]) -> Any:
        if self._async:
            return await self._function(messages)
        return await asyncio.to_thread(self._function, messages)


def _outcome(result: object) -> Outcome:
    if result is None:
        return SENT
    if isinstance(result, Sent | Refused | Failed | HeldBack):
        return result
    return Failed(f"the function returned {type(result).__name__}, which is neither None nor an outcome")


def _outcomes(result: object, count: int) -> Sequence[Outcome]:
    if result is None:
        return [SENT] * count
    if not isinstance(result, Sequence) or len(result) != count:
        return [Failed(f"the function did not return None or {count} outcomes")] * count
    return [_outcome(each_result) for each_result in result]


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
