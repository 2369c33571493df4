"""Deleting old rows in bounded batches, in the order of the index, past what others hold and what may not go."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Table, bindparam, delete, or_, select
from sqlalchemy.exc import IntegrityError

from sa_taskqueue.adapters.base import Adapter, status_literal
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.adapters.shapes import AnySelect
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.store.fetching import skip_locked_first
from sa_taskqueue.store.savepoints import savepoint

Mark = tuple[dt.datetime, uuid.UUID]
"""How far the index was read: when a row ended, and its id."""


def prune(
    connection: Connection,
    table: Table,
    status: enum.StrEnum,
    older_than: dt.timedelta,
    limit: int,
    *,
    ended: str = "finished_at",
) -> int:
    """Delete up to `limit` rows that ended in `status` longer than `older_than` ago; how many were deleted.
    `ended` is the column that says when.

    Fewer than `limit`: there are no more that can be deleted now. Rows that other transactions hold are skipped, and so
    are rows that a foreign key protects, whether it is in the metadata or not.
    """
    adapter = adapter_for(connection.dialect)
    old = _old_rows(adapter, table, status, older_than, ended)
    deleted, mark = 0, None
    while deleted < limit:
        wanted = limit - deleted
        following = adapter.by_index(_after(table, old, mark, ended), table, index_name(table, "prune"))
        seen = wanted
        if adapter.locks_behind_last:
            # A read first, so that no more rows are asked for than there are. With 100,000 tasks and 8 workers MariaDB
            # 10.11 called the lock of a row that a finish was just writing a deadlock once (2026-12-01). Not
            # everywhere: a plain read waits for such a row on SQL Server.
            seen = len(connection.execute(following.limit(wanted)).all())
        rows: Sequence[Any] = skip_locked_first(connection, adapter, following, rows=seen) if seen else []
        deleted += _delete(connection, table, status, [row.id for row in rows])
        if len(rows) < wanted:
            break
        mark = (rows[-1][0], rows[-1].id)
    return deleted


def _old_rows(adapter: Adapter, table: Table, status: enum.StrEnum, older_than: dt.timedelta, ended: str) -> AnySelect:
    columns, moment = table.c, table.c[ended]
    return (
        select(moment, columns.id)
        .where(columns.status == status_literal(status))
        .where(moment < adapter.ago(older_than.total_seconds()))
        .order_by(moment, columns.id)
    )


def _after(table: Table, old: AnySelect, mark: Mark | None, ended: str) -> AnySelect:
    if mark is None:
        return old
    moment, row_id = mark
    columns, ended_at = table.c, table.c[ended]
    # Not a row comparison: MySQL reads the index from its start for those.
    return old.where(ended_at >= moment).where(or_(ended_at > moment, columns.id > row_id))


def _delete(connection: Connection, table: Table, status: enum.StrEnum, ids: Sequence[uuid.UUID]) -> int:
    """Delete them all; where that is refused, first without what is known to be protected, then by halves."""
    if not ids:
        return 0
    deleted = _delete_at_once(connection, table, status, ids)
    if deleted is not None:
        return deleted
    protected = _protected(connection, table, ids)
    if protected:
        return _delete(connection, table, status, [each for each in ids if each not in protected])
    if len(ids) == 1:
        return 0
    middle = len(ids) // 2
    return sum(_delete(connection, table, status, half) for half in (ids[:middle], ids[middle:]))


def _delete_at_once(connection: Connection, table: Table, status: enum.StrEnum, ids: Sequence[uuid.UUID]) -> int | None:
    """How many were deleted; None when a foreign key forbids it, and then none."""
    statement = delete(table).where(table.c.status == status_literal(status))
    try:
        with savepoint(connection):
            if adapter_for(connection.dialect).lists_may_scan:
                # MariaDB 10.11 waited for the fifth row when four of five were named (2026-11-30); one by one it does
                # not. 1,000 rows took 0.3 to 0.9 s on a busy machine, by a list 0.2: nobody waits for this.
                one = statement.where(table.c.id == bindparam("old_id"))
                connection.execute(one, [{"old_id": each} for each in ids])
                return len(ids)
            return connection.execute(statement.where(table.c.id.in_(ids))).rowcount
    except IntegrityError:
        return None


def _protected(connection: Connection, table: Table, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """The ids that rows of the user's mapped tables refer to."""
    found: set[uuid.UUID] = set()
    for column in _references(table):
        found.update(connection.scalars(select(column).where(column.in_(ids)).distinct()))
    return found


def _references(table: Table) -> list[Column[uuid.UUID]]:
    """The columns in the same metadata whose foreign key to the table keeps a row from being deleted."""
    return [
        key.parent
        for other in table.metadata.tables.values()
        for key in other.foreign_keys
        if key.references(table) and not (key.ondelete or "").upper().startswith(("CASCADE", "SET "))
    ]
