"""Helpers of the tests: waiting for a condition without sleeping blindly."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

#: Generous: a slow two-core machine under other load must still pass.
TIMEOUT = 90.0
INTERVAL = 0.01


def eventually(condition: Callable[[], T], *, timeout: float = TIMEOUT, message: str = "") -> T:
    """Call `condition` until it returns something true, and return that; AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    never = threading.Event()
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(message or f"not true within {timeout:g} s: {condition!r}, last result {result!r}")
        never.wait(INTERVAL)
    return result


async def eventually_async(
    condition: Callable[[], T | Awaitable[T]], *, timeout: float = TIMEOUT, message: str = ""
) -> T:
    """Like `eventually`, on the running loop; `condition` may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        result: T = await value if isinstance(value, Awaitable) else value
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(message or f"not true within {timeout:g} s: {condition!r}, last result {result!r}")
        await asyncio.sleep(INTERVAL)
