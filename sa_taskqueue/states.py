"""The statuses of tasks, messages and keys, the moves between them, and the outcomes a handler may choose."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

_LONGEST_DELAY = 36_525 * 86_400.0
"""A hundred years, as for `run_after`: MySQL's clock plus more is NULL, PostgreSQL's an error."""


class Status(enum.StrEnum):
    """Where a task stands; the value is what the column holds."""

    SCHEDULED = "SCHEDULED"
    NEW = "NEW"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TERMINAL: frozenset[Status] = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})

# RUNNING to NEW is a release or a take-over, to SCHEDULED a retry or a snooze; FAILED and CANCELLED are
# left only by an operator. A waiting task may be replaced, which moves it between NEW and SCHEDULED.
TRANSITIONS: Mapping[Status, frozenset[Status]] = MappingProxyType(
    {
        Status.SCHEDULED: frozenset({Status.NEW, Status.SCHEDULED, Status.CANCELLED}),
        Status.NEW: frozenset({Status.RUNNING, Status.NEW, Status.SCHEDULED, Status.CANCELLED}),
        Status.RUNNING: frozenset({Status.NEW, Status.SCHEDULED}) | TERMINAL,
        Status.COMPLETED: frozenset(),
        Status.FAILED: frozenset({Status.NEW, Status.SCHEDULED}),
        Status.CANCELLED: frozenset({Status.NEW, Status.SCHEDULED}),
    }
)


def allowed(old: Status, new: Status) -> bool:
    """Tell whether a task may move from one status to another."""
    return new in TRANSITIONS[old]


class MessageStatus(enum.StrEnum):
    """Where a message of the outbox stands."""

    SCHEDULED = "SCHEDULED"
    NEW = "NEW"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SENT = "SENT"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"


# RUNNING is a message that no key orders, leased by a relay. A message of a key is QUEUED when it has its number; then
# the key is leased and not the message, which goes from there to where it ends. BLOCKED is the first message of a key
# that is held back. Only an operator sends again what is SENT or FAILED.
_WAITING = frozenset({MessageStatus.SCHEDULED, MessageStatus.NEW, MessageStatus.QUEUED})
_ENDS = frozenset({MessageStatus.SENT, MessageStatus.FAILED})

MESSAGE_TRANSITIONS: Mapping[MessageStatus, frozenset[MessageStatus]] = MappingProxyType(
    {
        MessageStatus.SCHEDULED: frozenset({MessageStatus.SCHEDULED, MessageStatus.NEW, MessageStatus.FAILED}),
        MessageStatus.NEW: frozenset(_WAITING | {MessageStatus.RUNNING, MessageStatus.FAILED}),
        MessageStatus.QUEUED: frozenset(_ENDS | {MessageStatus.QUEUED, MessageStatus.BLOCKED}),
        MessageStatus.RUNNING: frozenset(_WAITING | _ENDS),
        MessageStatus.SENT: _WAITING,
        MessageStatus.BLOCKED: frozenset({MessageStatus.QUEUED, MessageStatus.SENT, MessageStatus.FAILED}),
        MessageStatus.FAILED: _WAITING,
    }
)


class KeyStatus(enum.StrEnum):
    """Where a key of the outbox stands: nothing to send, something to send, or held back by its first message."""

    IDLE = "IDLE"
    READY = "READY"
    BLOCKED = "BLOCKED"


KEY_TRANSITIONS: Mapping[KeyStatus, frozenset[KeyStatus]] = MappingProxyType(
    {
        KeyStatus.IDLE: frozenset({KeyStatus.READY}),
        KeyStatus.READY: frozenset(KeyStatus),
        KeyStatus.BLOCKED: frozenset({KeyStatus.READY, KeyStatus.IDLE}),
    }
)


class Outcome(Exception):
    """What a handler decides about its task; it may be returned or raised."""


class Complete(Outcome):
    """The task is done; ``result`` is stored if the task was registered with ``store_result=True``."""

    def __init__(self, result: object = None) -> None:
        super().__init__(result)
        self.result = result


class Retry(Outcome):
    """Run the task again. ``after`` is a timedelta or seconds; None asks the retry policy."""

    def __init__(self, after: timedelta | float | None = None, reason: str = "") -> None:
        super().__init__(after, reason)
        self.after = None if after is None else delay_seconds(after)
        self.reason = reason


class Snooze(Outcome):
    """Put the task off for a timedelta or seconds, without counting the attempt."""

    def __init__(self, after: timedelta | float) -> None:
        super().__init__(after)
        self.after = delay_seconds(after)


class Cancel(Outcome):
    """The task is not needed any more; the handler's work in its session is kept."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Fail(Outcome):
    """The task failed for good, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def delay_seconds(after: timedelta | float) -> float:
    """Seconds from now that every database can add to its clock.

    Less than none is none, because a handler that ran long often asks for the past; NaN is none as well.
    """
    seconds = after.total_seconds() if isinstance(after, timedelta) else float(after)
    return min(seconds, _LONGEST_DELAY) if seconds > 0 else 0.0
