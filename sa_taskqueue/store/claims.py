"""Taking due tasks of one queue."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Float,
    Integer,
    Table,
    Text,
    Unicode,
    bindparam,
    case,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.base import ONE, Adapter, after_change, status_literal
from sa_taskqueue.adapters.shapes import AnySelect, Assignments, Columns, TakeShape
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import Status
from sa_taskqueue.store.careful import CarefulClaim
from sa_taskqueue.store.memory import ClaimMemory, Position, Reach
from sa_taskqueue.store.reading import ClaimReader, Unreadable
from sa_taskqueue.store.rows import Claimed
from sa_taskqueue.store.running import take


class Claims:
    """The claim of one table: its statements, built once, and what runs them.

    With ``lock_only`` nothing is written: the rows are locked, and shown with attempt and epoch raised.
    """

    def __init__(self, table: Table, adapter: Adapter, *, lock_only: bool = False) -> None:
        self._table = table
        self._adapter = adapter
        self._reader = ClaimReader(table, adapter)
        due, assignments, columns = self._due(), self._assignments(), self._reader.columns()
        self._from_positions: TakeShape | None = None
        if lock_only:
            self._shape: TakeShape = adapter.take_locks(table, due, self._as_they_will_be(columns))
        else:
            self._shape = adapter.take(table, due, assignments, columns)
            self._from_positions = adapter.take_from(table, due, assignments, columns)
        self._careful = CarefulClaim(table, adapter, due, self._shape, self.fail_unreadable)
        self._doubtful: set[str] = set()
        self._fail = _failing(table, adapter)

    def memory(self) -> ClaimMemory | None:
        """A new memory for one worker and queue; None where the database gains nothing by it."""
        return None if self._from_positions is None else ClaimMemory()

    def claim(
        self, connection: Connection, queue: str, limit: int, *, lease: float, by: str, memory: ClaimMemory | None
    ) -> list[Claimed]:
        """Up to ``limit`` due tasks in the order of the claim; each is held for ``lease`` seconds.

        Where the driver fails on a value, the error is raised once; the next claim of the queue finds the row.
        """
        at_most = min(limit, self._adapter.longest_list or limit)
        values = {"of_queue": queue, "at_most": at_most, "lease": lease, "holder": by}
        if queue in self._doubtful:
            self._doubtful.remove(queue)
            return self._read(connection, self._careful.take(connection, values))
        try:
            if memory is None:
                return self._read(connection, take(connection, self._shape, values))
            return self._remembering(connection, values, memory)
        except (DBAPIError, ValueError) as error:
            if self._careful.is_unreadable(error):
                self._doubtful.add(queue)
            raise

    def _remembering(self, connection: Connection, values: dict[str, Any], memory: ClaimMemory) -> list[Claimed]:
        started, reach = time.monotonic(), memory.reach()
        if reach is Reach.START or self._from_positions is None:
            rows = take(connection, self._shape, values)
        else:
            rows = take(connection, self._from_positions, {**values, **memory.ranges(reach)})
        claimed = self._read(connection, rows)
        moments = {row[0]: row[-1] for row in rows}
        taken = [Position(task.priority, moments[task.id], task.id) for task in claimed]
        memory.claimed(reach, taken, full=len(rows) == values["at_most"], started=started)
        return claimed

    def _read(self, connection: Connection, rows: Sequence[Any]) -> list[Claimed]:
        claimed, unreadable = self._reader.read(connection.dialect, rows)
        for row in unreadable:
            self.fail_unreadable(connection, row)
        return claimed

    def fail_unreadable(self, connection: Connection, row: Unreadable) -> None:
        """FAILED with code ``undecodable``: the row harms only itself, and an operator may mend and revive it."""
        error = json.dumps({"code": "undecodable", "message": row.reason})
        connection.execute(self._fail, {"raw_id": row.raw_id, "new_error": error})

    def _due(self) -> AnySelect:
        """Equality and the order of the claim index, nothing else: so no row is locked that is not returned."""
        columns = self._table.c
        due = (
            select(columns.id)
            .where(
                columns.queue == bindparam("of_queue", type_=Unicode()), columns.status == status_literal(Status.NEW)
            )
            .order_by(columns.priority, columns.ready_at, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        return self._adapter.by_index(due, self._table, index_name(self._table, "claim"))

    def _as_they_will_be(self, columns: Columns) -> Columns:
        table = self._table.c
        return after_change(columns, [(table.attempt, table.attempt + ONE), (table.epoch, table.epoch + ONE)])

    def _assignments(self) -> Assignments:
        columns = self._table.c
        return [
            (columns.status, status_literal(Status.RUNNING)),
            (columns.attempt, columns.attempt + ONE),
            (columns.epoch, columns.epoch + ONE),
            (columns.reserved_until, self._adapter.after(bindparam("lease", type_=Float()))),
            (columns.reserved_by, bindparam("holder", type_=Unicode())),
            freed_at_start(self._table),
        ]


def freed_at_start(table: Table) -> tuple[Column[Any], ColumnElement[Any]]:
    """The assignment that frees a unique key which holds only until the task starts."""
    columns = table.c
    freed = case((columns.unique_until == literal_column("'start'"), null()), else_=columns.unique_hash)
    return columns.unique_hash, freed


def _failing(table: Table, adapter: Adapter) -> Any:
    columns = table.c
    return (
        update(table)
        .where(columns.id == bindparam("raw_id", type_=adapter.id_type()))
        .values(
            status=status_literal(Status.FAILED),
            error=adapter.json(bindparam("new_error", type_=Text())),
            finished_at=adapter.clock(),
            epoch=columns.epoch + ONE,
            reserved_until=null(),
            reserved_by=null(),
            unique_hash=null(),
        )
    )
