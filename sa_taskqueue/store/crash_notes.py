"""Notes of attempts that have begun: whoever finds one on a task that is free knows that its worker died.

A note is committed before the work begins and deleted in the transaction that ends it. Where the lock on the task's row
holds it, the note is written by another connection: the row could not be changed from there without waiting for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Integer,
    String,
    Table,
    Text,
    bindparam,
    case,
    delete,
    insert,
    literal,
    null,
    select,
    update,
)

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.states import Status
from sa_taskqueue.store.leases import LOST_WORKER
from sa_taskqueue.store.rows import Claimed


class CrashNotes:
    """The notes of one table of tasks."""

    def __init__(self, table: Table, notes: Table, adapter: Adapter) -> None:
        self.table = notes
        these = notes.c.task_id.in_(bindparam("ids", expanding=True))
        self._find = select(notes.c.task_id, notes.c.attempt).where(these)
        self._delete = delete(notes).where(these)
        self._delete_own = self._delete.where(notes.c.by == bindparam("of_worker", type_=String()))
        self._count = _counting(table, adapter)

    def write(self, connection: Connection, claims: Sequence[Claimed], by: str) -> None:
        """Note that these attempts begin, in one statement for all."""
        if claims:
            notes = [{"task_id": claimed.id, "attempt": claimed.attempt, "by": by} for claimed in claims]
            connection.execute(insert(self.table), notes)

    def delete(self, connection: Connection, ids: Sequence[UUID]) -> None:
        """The attempts have ended, whoever began them."""
        if ids:
            connection.execute(self._delete, {"ids": list(ids)})

    def delete_own(self, connection: Connection, ids: Sequence[UUID], by: str) -> None:
        """The attempts of this worker have ended; another's note of the same task stays."""
        if ids:
            connection.execute(self._delete_own, {"ids": list(ids), "of_worker": by})

    def count(self, connection: Connection, claims: Sequence[Claimed], *, max_crashes: int) -> list[Claimed]:
        """Turn the notes left on claimed tasks into crashes; the tasks without one, which may be run.

        The others go to the end of the line, or become FAILED at the limit, when this is committed.
        """
        if not claims:
            return []
        rows = connection.execute(self._find, {"ids": [claimed.id for claimed in claims]})
        found: dict[UUID, int] = {row.task_id: row.attempt for row in rows}
        # A lease's worker that ran the task meanwhile has counted the attempt and left the note behind.
        crashed = [claimed for claimed in claims if found.get(claimed.id) == claimed.attempt]
        if crashed:
            values = [{"old_id": one.id, "new_attempt": one.attempt, "max_crashes": max_crashes} for one in crashed]
            connection.execute(self._count, values)
        self.delete(connection, list(found))
        return [claimed for claimed in claims if claimed.id not in found]


def _counting(table: Table, adapter: Adapter) -> Any:
    columns = table.c
    hopeless = (columns.crashes + ONE >= bindparam("max_crashes", type_=Integer())) | (
        columns.attempt + ONE >= columns.max_attempts
    )
    lost = adapter.json(literal(LOST_WORKER, Text()))
    change = update(table).where(
        columns.id == bindparam("old_id", type_=columns.id.type),
        # Where no lock on the row holds the task, an end that comes late may be written in this moment.
        columns.status == status_literal(Status.NEW),
        columns.attempt + ONE == bindparam("new_attempt", type_=Integer()),
    )
    return change.ordered_values(
        (columns.status, case((hopeless, status_literal(Status.FAILED)), else_=columns.status)),
        (columns.ready_at, case((hopeless, columns.ready_at), else_=adapter.clock())),
        (columns.finished_at, case((hopeless, adapter.clock()), else_=null())),
        (columns.error, case((hopeless, lost), else_=columns.error)),
        (columns.unique_hash, case((hopeless, null()), else_=columns.unique_hash)),
        # After everything that depends on them: MySQL assigns from left to right.
        (columns.attempt, columns.attempt + ONE),
        (columns.crashes, columns.crashes + ONE),
        (columns.epoch, columns.epoch + ONE),
    )
