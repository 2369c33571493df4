"""Threads beside the loop. They are daemonic: a driver that never returns must not keep a process alive."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

R = TypeVar("R")


class OneThread:
    """A thread that runs one call after the other, started at the first.

    Not `concurrent.futures`, which joins its threads when the process exits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[[], R]) -> Future[R]:
        """Queue the call."""
        future: Future[R] = Future()

        def work() -> None:
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  delivered to whoever waits for the future
                future.set_exception(error)

        self._calls.put(work)
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
            self._thread.start()
        return future

    def stop(self) -> None:
        """End the thread after what is queued; does not wait."""
        self._calls.put(None)

    def _loop(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # else the last call's connection lives as long as the idle thread


def call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    """Call on the loop from another thread; nothing once the loop has ended."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise
