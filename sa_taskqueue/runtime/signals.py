"""The signals that ask a process to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator

logger = logging.getLogger("sa_taskqueue.runtime")

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for each signal, while the block runs; nothing outside the main thread, where Python allows none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def received(number: int, _frame: object) -> None:
        logger.info("received %s", signal.Signals(number).name)
        loop.call_soon_threadsafe(stop)

    for number in SIGNALS:
        signal.signal(number, received)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
