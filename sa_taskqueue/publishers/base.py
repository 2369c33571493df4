"""What every publisher takes and answers, whatever broker it speaks to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias, runtime_checkable
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the outbox, on its way to a broker."""

    id: UUID
    topic: str
    payload: bytes = field(repr=False)
    time: datetime
    """When it was published, with a time zone."""
    source: str
    """CloudEvents: who sends; a URI reference such as ``/orders``."""
    type: str | None = None
    """CloudEvents: what happened; the topic stands in for none."""
    key: str | None = None
    seq: int | None = None
    """Its place among the messages of its key; None if it has no order."""
    epoch: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def ordered_by(self) -> str | None:
        """The key whose order it keeps, if it keeps one."""
        return self.key if self.seq is not None else None


@dataclass(frozen=True, slots=True)
class Sent:
    """The broker confirmed the message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This message will never be taken as it is, whatever the time: too large, nowhere to go."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It was not confirmed, and may be another time. The broker may have it all the same, so it may arrive twice."""

    reason: str
    retry_after: float | None = None
    """Seconds that the receiver asks to be left alone for."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """An earlier message of its key was not confirmed, so it has to wait for that one."""


Outcome: TypeAlias = Sent | Refused | Failed | HeldBack

SENT = Sent()
HELD_BACK = HeldBack()


@runtime_checkable
class Publisher(Protocol):
    """Speaks to one broker. It belongs to the event loop on which it was opened."""

    async def open(self) -> None:
        """Connect. BrokerUnavailable if that cannot be done now; it may be called again."""

    async def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """One outcome for each message, in order; returns after the broker confirmed, or after a bounded time.

        Messages with a ``seq`` go out in the given order within their key; after one that is not confirmed, no later
        one of its key counts as sent in this call. A lost connection is made anew by the next call.
        """
        ...

    async def close(self) -> None:
        """Free the connection; harmless if there is none."""
