"""What to do after a statement failed: a pure decision, so that it is tested without a server."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from sa_taskqueue.adapters.errors import ErrorKind

MAX_RETRIES = 5
"""How often one operation is repeated after a deadlock, a serialization failure or a busy lock."""

RETRY_BASE, RETRY_CAP = 0.02, 1.0
"""Seconds. A deadlock's winner is done within milliseconds; together five repeats wait less than one lock timeout."""

RECONNECT_BASE, RECONNECT_CAP = 0.1, 10.0
"""Seconds. A PostgreSQL restart took 1 to 2 s here (2026-11-30); the cap spares a server that is down for long."""


class Action(enum.Enum):
    """What follows a failure."""

    REPEAT = enum.auto()
    RECONNECT = enum.auto()
    RAISE = enum.auto()


def full_jitter(
    attempt: int, base: float, cap: float, uniform: Callable[[float, float], float] = random.uniform
) -> float:
    """Seconds between 0 and min(cap, base * 2**attempt); attempt counts from 0 and may be any size."""
    return uniform(0.0, min(cap, base * 2.0 ** min(attempt, 30)))


@dataclass
class Failures:
    """The failures of one operation in a row: decides what follows each of them, and after which delay."""

    max_retries: int = MAX_RETRIES
    repeats: int = 0
    reconnects: int = 0
    uniform: Callable[[float, float], float] = field(default=random.uniform, repr=False)

    def decide(self, kind: ErrorKind) -> Action:
        """The action for an error before COMMIT was sent, when all the operation did is rolled back."""
        if kind is ErrorKind.DISCONNECT:
            return Action.RECONNECT
        if kind.retryable and self.repeats < self.max_retries:
            return Action.REPEAT
        return Action.RAISE

    def delay(self, action: Action) -> float:
        """Seconds to wait before the action; counts it."""
        if action is Action.RECONNECT:
            self.reconnects += 1
            return full_jitter(self.reconnects - 1, RECONNECT_BASE, RECONNECT_CAP, self.uniform)
        self.repeats += 1
        return full_jitter(self.repeats - 1, RETRY_BASE, RETRY_CAP, self.uniform)
