"""Waiting for a condition, for as long as a busy machine may take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT = 90.0
"""Seconds. Only a test that fails waits so long."""

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
