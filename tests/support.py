"""Helpers of the tests: waiting for a condition without sleeping blindly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sa_taskqueue.testing.waiting import INTERVAL, TIMEOUT, eventually

__all__ = ["INTERVAL", "TIMEOUT", "eventually", "eventually_async"]

T = TypeVar("T")


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
