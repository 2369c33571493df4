"""What an operator does to tasks: look, retry, cancel. Every change raises the epoch: no old holder can finish."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, Update, select, update
from sqlalchemy.exc import IntegrityError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.models.keys import unique_hash
from sa_taskqueue.states import Status
from sa_taskqueue.store.reading import converter, raw, shown
from sa_taskqueue.store.savepoints import savepoint

REVIVABLE = frozenset({Status.FAILED, Status.CANCELLED})
WAITING = frozenset({Status.NEW, Status.SCHEDULED})


class Choice(NamedTuple):
    """Which tasks: those of these ids, queue and name; None does not limit."""

    ids: Collection[uuid.UUID] | None = None
    queue: str | None = None
    name: str | None = None


ALL = Choice()

_MOMENTS = ("scheduled_at", "created_at", "finished_at", "reserved_until")
"""Read as the driver gives them: SQLite keeps any text in them, and one that is no time must not hide all rows."""


class TaskRow(NamedTuple):
    """A task as it stands. `error` is JSON text, the datetimes are aware UTC; one that cannot be read is None."""

    id: uuid.UUID
    queue: str
    name: str
    status: Status
    priority: int
    attempt: int
    max_attempts: int
    crashes: int
    epoch: int
    scheduled_at: dt.datetime | None
    created_at: dt.datetime | None
    finished_at: dt.datetime | None
    reserved_until: dt.datetime | None
    reserved_by: str | None
    unique_key: str | None
    body: str
    headers: str | None
    error: str | None
    result: str | None


class Retried(NamedTuple):
    """The ids that will run again, and those that stay as they are because another task holds their unique key."""

    ids: list[uuid.UUID]
    conflicts: list[uuid.UUID]


def list_tasks(
    connection: Connection,
    table: Table,
    choice: Choice = ALL,
    *,
    statuses: Collection[Status] = (),
    before: uuid.UUID | None = None,
    limit: int = 50,
) -> list[TaskRow]:
    """Up to `limit` tasks, the newest first; `before` is the last id of the page before. No statuses: all."""
    columns = (raw(table.c[name]) if name in _MOMENTS else table.c[name] for name in TaskRow._fields)
    statement = select(*columns).where(*_chosen(table, choice, statuses))
    if before is not None:
        statement = statement.where(table.c.id < before)
    rows = connection.execute(statement.order_by(table.c.id.desc()).limit(limit))
    moments = {name: converter(table.c[name].type, connection.dialect) for name in _MOMENTS}
    return [
        TaskRow(*row)._replace(**{name: shown(moments[name], getattr(row, name)) for name in _MOMENTS}) for row in rows
    ]


def get(connection: Connection, table: Table, task_id: uuid.UUID) -> TaskRow | None:
    """The task of that id, None when there is none (any more)."""
    found = list_tasks(connection, table, Choice(ids=[task_id]), limit=1)
    return found[0] if found else None


def find(
    connection: Connection,
    table: Table,
    choice: Choice,
    statuses: Collection[Status],
    *,
    after: uuid.UUID | None = None,
    limit: int = 1000,
) -> list[uuid.UUID]:
    """The ids of up to `limit` tasks, the oldest first, without locks; `after` is the last id of the batch before."""
    statement = select(table.c.id).where(*_chosen(table, choice, statuses))
    if after is not None:
        statement = statement.where(table.c.id > after)
    return list(connection.scalars(statement.order_by(table.c.id).limit(limit)))


def retry(connection: Connection, table: Table, ids: Sequence[uuid.UUID]) -> Retried:
    """Make FAILED and CANCELLED tasks NEW, their attempts and crashes counted from 0; other tasks are left alone.

    A task with a unique key takes it again; where another task holds it now, that is a conflict. Errors are kept.
    """
    rows = _lock(connection, table, ids, REVIVABLE)
    retried = Retried([row.id for row in rows if row.unique_key is None], [])
    if retried.ids:
        connection.execute(_revival(connection, table).where(table.c.id.in_(retried.ids), _in(table, REVIVABLE)))
    keyed = [(unique_hash(row.name, row.unique_key), row.id) for row in rows if row.unique_key is not None]
    for key_hash, task_id in sorted(keyed):
        taken = _revive_keyed(connection, table, task_id, key_hash)
        (retried.ids if taken else retried.conflicts).append(task_id)
    return retried


def cancel(connection: Connection, table: Table, ids: Sequence[uuid.UUID], *, running: bool = False) -> list[uuid.UUID]:
    """Make waiting tasks CANCELLED, and with `running` RUNNING ones too; the ids of those that were.

    The worker of a running task is told when it renews the lease, and cannot finish the task any more.
    """
    statuses = WAITING | {Status.RUNNING} if running else WAITING
    found = [row.id for row in _lock(connection, table, ids, statuses)]
    if found:
        statement = update(table).where(table.c.id.in_(found), _in(table, statuses))
        connection.execute(
            statement.values(
                status=Status.CANCELLED,
                epoch=table.c.epoch + 1,
                finished_at=adapter_for(connection.dialect).clock(),
                reserved_until=None,
                reserved_by=None,
                unique_hash=None,
            )
        )
    return found


def _chosen(table: Table, choice: Choice, statuses: Collection[Status]) -> list[ColumnElement[bool]]:
    conditions = [table.c[name] == value for name, value in choice._asdict().items() if name != "ids" and value]
    if choice.ids is not None:
        conditions.append(table.c.id.in_(choice.ids))
    if statuses:
        conditions.append(_in(table, statuses))
    return conditions


def _in(table: Table, statuses: Collection[Status]) -> ColumnElement[bool]:
    return table.c.status.in_(sorted(statuses))


def _lock(connection: Connection, table: Table, ids: Sequence[uuid.UUID], statuses: Collection[Status]) -> list[Any]:
    """Those of the rows that have one of the statuses, locked in the order of their ids without waiting."""
    columns = table.c
    rows = select(columns.id, columns.name, columns.unique_key, columns.status).where(columns.id.in_(ids))
    locked = adapter_for(connection.dialect).skip_locked(rows.order_by(columns.id))
    return [row for row in connection.execute(locked) if row.status in statuses]


def _revival(connection: Connection, table: Table) -> Update:
    clock = adapter_for(connection.dialect).clock()
    return update(table).values(
        status=Status.NEW,
        scheduled_at=clock,
        ready_at=clock,
        attempt=0,
        crashes=0,
        epoch=table.c.epoch + 1,
        finished_at=None,
    )


def _revive_keyed(connection: Connection, table: Table, task_id: uuid.UUID, key_hash: bytes) -> bool:
    statement = _revival(connection, table).where(table.c.id == task_id, _in(table, REVIVABLE))
    try:
        with savepoint(connection):
            connection.execute(statement.values(unique_hash=key_hash))
    except IntegrityError as error:
        if adapter_for(connection.dialect).classify(error) is not ErrorKind.UNIQUE:
            raise
        return False
    return True
