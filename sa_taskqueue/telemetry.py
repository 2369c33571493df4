"""Named events for whoever measures the queue; OpenTelemetry and Prometheus listen from outside.

A listener is called in the thread where the event happens and must return quickly. Hot paths ask
`listening()` before they build an event. Logs go to the loggers named ``sa_taskqueue.*``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

logger = logging.getLogger("sa_taskqueue.telemetry")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to tasks."""


@dataclass(frozen=True, slots=True)
class TasksClaimed(Event):
    """A worker took tasks for itself; ``seconds`` is the time the claim took."""

    queue: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    """A handler returned and its outcome is stored; ``status`` SCHEDULED is a retry or a snooze."""

    id: UUID
    name: str
    queue: str
    status: str
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LeasesLost(Event):
    """A worker may not finish these tasks any more; others hold them or will."""

    ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class TasksTakenOver(Event):
    """Leases had ended without a finish: freed tasks run again, failed ones crashed too often."""

    freed: int
    failed: int


@dataclass(frozen=True, slots=True)
class TasksPromoted(Event):
    """Scheduled tasks fell due and became free."""

    count: int


@dataclass(frozen=True, slots=True)
class TasksPruned(Event):
    """Old rows were deleted."""

    status: str
    count: int


@dataclass(frozen=True, slots=True)
class MessagesRelayed(Event):
    """A broker answered for a batch of messages, and that is stored; ``target`` is the first pattern that leads to it.

    ``count`` were confirmed; ``seconds`` is the time from sending to the COMMIT.
    """

    target: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MessageGivenUp(Event):
    """No try is left for a message, or the broker refused it. ``error`` is JSON text.

    ``status`` BLOCKED: the later messages of its key wait for an operator. FAILED: they do not.
    """

    id: UUID
    key: str | None
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class ConnectionLost(Event):
    """A held connection broke and is made anew."""

    lane: str


Carrier = Callable[[], Mapping[str, str]]

_carrier: Carrier | None = None


def carry(carrier: Carrier | None) -> None:
    """Give each message the headers that ``carrier`` returns when it is published: ``traceparent``, for instance."""
    global _carrier  # noqa: PLW0603 - replaced whole
    _carrier = carrier


def carried() -> Mapping[str, str]:
    """The headers for a message that is published now; none from a carrier that raises, which is logged."""
    if _carrier is None:
        return {}
    try:
        return _carrier()
    except Exception:
        logger.exception("the telemetry carrier failed")
        return {}


Listener = Callable[[Event], None]

_listeners: tuple[Listener, ...] = ()


def subscribe(listener: Listener) -> Callable[[], None]:
    """Call ``listener`` with every event from now on; the returned function ends that."""
    global _listeners  # noqa: PLW0603 - replaced whole, so that emit needs no lock
    _listeners = (*_listeners, listener)

    def unsubscribe() -> None:
        global _listeners  # noqa: PLW0603 - as above
        _listeners = tuple(each for each in _listeners if each is not listener)

    return unsubscribe


def listening() -> bool:
    """Tell whether anybody would receive an event."""
    return bool(_listeners)


def emit(event: Event) -> None:
    """Hand an event to all listeners; one that raises is logged and never harms a task."""
    for listener in _listeners:
        try:
            listener(event)
        except Exception:
            logger.exception("a telemetry listener failed on %s", type(event).__name__)
