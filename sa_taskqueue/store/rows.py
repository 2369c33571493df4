"""The rows that go in and out of the store: plain tuples, made by the thousand."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple
from uuid import UUID

from sa_taskqueue.states import Status

Pair = tuple[UUID, int]
"""A held task as every guarded write names it: ``(id, epoch)``."""


class Claimed(NamedTuple):
    """A task as its new holder sees it: attempt and epoch are raised already. JSON is text, datetimes are aware UTC."""

    id: UUID
    name: str
    queue: str
    priority: int
    body: str
    headers: str | None
    attempt: int
    max_attempts: int
    crashes: int
    epoch: int
    errors: str | None
    error: str | None
    scheduled_at: dt.datetime
    created_at: dt.datetime


class Settlement(NamedTuple):
    """How one held task ends, or goes on: SCHEDULED with a delay in seconds (0: NEW at once).

    ``result``, ``error`` and ``errors`` (the history) are JSON text; None leaves the column as it is.
    """

    id: UUID
    epoch: int
    status: Status
    delay: float = 0.0
    result: str | None = None
    error: str | None = None
    errors: str | None = None
    count_attempt: bool = True
    delete: bool = False


class Renewed(NamedTuple):
    """The leases that were moved, and the tasks still held whose row was locked: their lease ends when it did."""

    extended: set[UUID]
    standing: set[UUID]


class TakenOver(NamedTuple):
    """The tasks whose lease had ended: freed for another attempt, or failed for good."""

    freed: list[UUID]
    failed: list[UUID]
