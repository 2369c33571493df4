"""A new task as the values of a row."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, select, type_coerce

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.models.types import UtcDateTime
from sa_taskqueue.states import Status


class NewTask(Protocol):
    """What the store needs to know of a new task, checked by whoever made it."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def run_at(self) -> dt.datetime | None: ...
    @property
    def delay(self) -> dt.timedelta | None: ...
    @property
    def body(self) -> str: ...
    @property
    def headers(self) -> str | None: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def unique_key(self) -> str | None: ...
    @property
    def unique_hash(self) -> bytes | None: ...
    @property
    def unique_until(self) -> str | None: ...
    @property
    def on_duplicate(self) -> str | None: ...


def database_now(connection: Connection) -> dt.datetime:
    """The database's clock, aware UTC."""
    clock = adapter_for(connection.dialect).clock()
    now: dt.datetime = connection.execute(select(type_coerce(clock, UtcDateTime))).scalar_one()
    return now


def row_values(connection: Connection, tasks: Sequence[NewTask]) -> list[dict[str, Any]]:
    """The values of the rows; see `each_row`."""
    return list(each_row(connection, tasks))


def each_row(connection: Connection, tasks: Sequence[NewTask]) -> Iterator[dict[str, Any]]:
    """Make the values of each row, the same columns in all of them, so that one statement inserts them all.

    The clock's columns are left to the database, unless a task is to run later: then `scheduled_at` stands in each row.
    """
    if all(task.run_at is None and task.delay is None for task in tasks):
        return (_values(task, Status.NEW) for task in tasks)
    now = database_now(connection)
    return (_scheduled(task, now) for task in tasks)


def _scheduled(task: NewTask, now: dt.datetime) -> dict[str, Any]:
    due = task.run_at if task.delay is None else now + task.delay
    values = _values(task, Status.NEW if due is None else Status.SCHEDULED)
    values["scheduled_at"] = now if due is None else due
    return values


def _values(task: NewTask, status: Status) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": task.id,
        "name": task.name,
        "queue": task.queue,
        "priority": task.priority,
        "status": status,
        "body": task.body,
        "headers": task.headers,
        "max_attempts": task.max_attempts,
    }
    if task.unique_hash is not None:
        values |= {
            "unique_key": task.unique_key,
            "unique_hash": task.unique_hash,
            "unique_until": task.unique_until,
        }
    return values
