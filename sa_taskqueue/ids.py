"""Task ids: UUID version 7 (RFC 9562), made by the client and rising within a process.

A rising primary key appends to its index instead of scattering over it.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime

_TAIL_BITS = 74  # what version 7 leaves beside 48 bits of milliseconds, 4 of version and 2 of variant
_TAIL_MASK = (1 << _TAIL_BITS) - 1
_LOW_BITS = 62
_VERSION = 7 << 76
_VARIANT = 0b10 << 62

_BLOCK = 4096
"""Bytes of randomness per system call for the later ids of a millisecond, four for each: with a call per id making
20,000 took twice as long (2026-11-30)."""


def uuid_of(number: int) -> uuid.UUID:
    """The UUID of a number known to have 128 bits; `uuid.UUID(int=...)` checks that, in twice the time (2026-12-01)."""
    made = _new(uuid.UUID)
    _set(made, "int", number)
    _set(made, "is_safe", uuid.SafeUUID.unknown)
    return made


_new = object.__new__
_set = object.__setattr__  # a UUID's own forbids it


class _Generator:
    """Gives rising ids: a new millisecond starts at random, the same one steps up by a random number.

    The system clock may stand still or go back: then the last millisecond is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds = 0
        self._tail = 0
        self._steps: Iterator[int] = iter(())

    def next(self) -> uuid.UUID:
        now = time.time_ns() // 1_000_000
        with self._lock:
            if now > self._milliseconds:
                self._milliseconds, self._tail = now, _start()
            else:
                self._tail += 1 + self._step()
                if self._tail > _TAIL_MASK:
                    self._milliseconds, self._tail = self._milliseconds + 1, _start()
            milliseconds, tail = self._milliseconds, self._tail
        high, low = tail >> _LOW_BITS, tail & ((1 << _LOW_BITS) - 1)
        return uuid_of(milliseconds << 80 | _VERSION | high << 64 | _VARIANT | low)

    def _step(self) -> int:
        """A random number of 32 bits; under the lock."""
        step = next(self._steps, None)
        if step is None:
            self._steps = iter(array("I", os.urandom(_BLOCK)))
            step = next(self._steps)
        return step


def _start() -> int:
    """Where a millisecond starts: one bit less than fits, so that there is room to step up.

    Not the `random` module: a program that calls random.seed() would make the same ids again.
    """
    return int.from_bytes(os.urandom(10), "big") >> 7


_generator = _Generator()


def _after_fork() -> None:
    """A child starts anew: the copied lock may be held by a thread that does not exist here."""
    global _generator  # noqa: PLW0603 - the one generator of the process
    _generator = _Generator()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def new_id() -> uuid.UUID:
    """Make an id greater than every one this process made before; safe from threads and after a fork."""
    return _generator.next()


def timestamp_of(task_id: uuid.UUID) -> datetime:
    """When an id was made, by its maker's clock: UTC, to the millisecond."""
    return datetime.fromtimestamp((task_id.int >> 80) / 1000, UTC)
