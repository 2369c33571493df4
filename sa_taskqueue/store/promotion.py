"""Making SCHEDULED tasks NEW when they are due."""

from __future__ import annotations

from sqlalchemy import Connection, Integer, Table, bindparam, select

from sa_taskqueue.adapters.base import Adapter, status_literal
from sa_taskqueue.adapters.shapes import Assignments
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import Status
from sa_taskqueue.store.reading import raw
from sa_taskqueue.store.running import take


class Promotion:
    """The promotion of one table: one bounded statement per priority in use, the most urgent first."""

    def __init__(self, table: Table, adapter: Adapter) -> None:
        self._agenda = adapter.agenda(table)
        self._lock = adapter.try_lock(_lock_name(table))
        self._unlock = adapter.unlock(_lock_name(table))
        columns = table.c
        due = (
            select(columns.id)
            .where(
                columns.status == status_literal(Status.SCHEDULED),
                columns.priority == bindparam("of_priority", type_=Integer()),
                columns.scheduled_at <= adapter.statement_clock(),
            )
            .order_by(columns.scheduled_at, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        due = adapter.by_index(due, table, index_name(table, "promote"))
        assignments: Assignments = [(columns.status, status_literal(Status.NEW)), (columns.ready_at, adapter.clock())]
        self._shape = adapter.take(table, due, assignments, [raw(columns.id)])

    def promote(self, connection: Connection, limit: int) -> int:
        """Promote up to ``limit`` due tasks; 0, too, while another promoter is at work on this table."""
        if self._lock is not None and not connection.scalar(self._lock):
            return 0
        try:
            return self._promote(connection, limit)
        finally:
            if self._unlock is not None:
                connection.execute(self._unlock)

    def next_due(self, connection: Connection) -> float | None:
        """Seconds until the next SCHEDULED task is due, negative if one is; None if there is none."""
        rows = connection.execute(self._agenda)
        return min((float(seconds) for _, seconds in rows if seconds is not None), default=None)

    def _promote(self, connection: Connection, limit: int) -> int:
        promoted = 0
        for priority, seconds in connection.execute(self._agenda).fetchall():
            if seconds is not None and seconds <= 0 and promoted < limit:
                values = {"of_priority": priority, "at_most": limit - promoted}
                promoted += len(take(connection, self._shape, values))
        return promoted


def _lock_name(table: Table) -> str:
    return f"sa_taskqueue:promote:{table.fullname}"
