"""Holding on to tasks, giving them back, and taking over what a dead worker held."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Table,
    Text,
    bindparam,
    case,
    literal,
    literal_column,
    null,
    select,
)

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.shapes import Assignments, TakeShape
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import Status
from sa_taskqueue.store.fetching import in_parts
from sa_taskqueue.store.reading import converter, raw
from sa_taskqueue.store.rows import Pair, Renewed, TakenOver
from sa_taskqueue.store.running import change_held, take

LOST_WORKER = json.dumps({"code": "lost_worker", "message": "The lease ended: the worker died or was cut off."})

Source = Mapping[str, ColumnElement[Any]]


class Leases:
    """What is done with rows that are RUNNING, for one table."""

    def __init__(self, table: Table, adapter: Adapter) -> None:
        self._table = table
        self._adapter = adapter
        self._renew = adapter.held(table, self._renewed, {}, wait=False)
        self._release = adapter.held(table, self._released, {})
        self._standing = self._still_held()
        self._lapsed = self._taking_over()

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        """Hold for ``lease`` more seconds, without waiting for a lock.

        A row that was skipped because a transaction has it locked, such as our own finish, is read again: with the
        same epoch and RUNNING it is held, and its lease ends when it did.
        """
        extended = change_held(connection, self._renew, held, values={"lease": lease})
        missing = {task: epoch for task, epoch in held if task not in extended}
        if not missing:
            return Renewed(extended, set())
        standing = {
            row.id
            for part in in_parts(list(missing), self._adapter.longest_list)
            for row in connection.execute(self._standing, {"ids": part})
            if missing[row.id] == row.epoch
        }
        return Renewed(extended, standing)

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float) -> set[UUID]:
        """Give back, the attempt not counted: NEW at once, or SCHEDULED after ``delay`` seconds."""
        return change_held(connection, self._release, held, values={"delay": delay})

    def take_over(self, connection: Connection, limit: int, *, max_crashes: int) -> TakenOver:
        """Free up to ``limit`` tasks whose lease ended; FAILED at ``max_crashes`` crashes or after the last attempt."""
        to_id = converter(self._table.c.id.type, connection.dialect)
        taken = TakenOver([], [])
        for raw_id, status in take(connection, self._lapsed, {"at_most": limit, "max_crashes": max_crashes}):
            ids = taken.failed if status == Status.FAILED else taken.freed
            ids.append(raw_id if to_id is None else to_id(raw_id))
        return taken

    def _renewed(self, _: Source) -> Assignments:
        return [(self._table.c.reserved_until, self._adapter.after(bindparam("lease", type_=Float())))]

    def _released(self, _: Source) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        delay = bindparam("delay", type_=Float())
        later = delay > literal_column("0")
        return [
            (columns.status, case((later, status_literal(Status.SCHEDULED)), else_=status_literal(Status.NEW))),
            (columns.scheduled_at, case((later, adapter.after(delay)), else_=columns.scheduled_at)),
            (columns.ready_at, adapter.clock()),
            (columns.attempt, columns.attempt - ONE),
            *let_go(self._table),
        ]

    def _still_held(self) -> Any:
        columns = self._table.c
        return select(columns.id, columns.epoch).where(
            columns.id.in_(bindparam("ids", expanding=True)), columns.status == status_literal(Status.RUNNING)
        )

    def _taking_over(self) -> TakeShape:
        columns, adapter = self._table.c, self._adapter
        lapsed = (
            select(columns.id)
            .where(columns.status == status_literal(Status.RUNNING), columns.reserved_until < adapter.statement_clock())
            .order_by(columns.reserved_until, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        hopeless = (columns.crashes + ONE >= bindparam("max_crashes", type_=Integer())) | (
            columns.attempt >= columns.max_attempts
        )
        lost = adapter.json(literal(LOST_WORKER, Text()))
        assignments: Assignments = [
            (columns.status, case((hopeless, status_literal(Status.FAILED)), else_=status_literal(Status.NEW))),
            (columns.ready_at, case((hopeless, columns.ready_at), else_=adapter.clock())),
            (columns.finished_at, case((hopeless, adapter.clock()), else_=null())),
            (columns.error, case((hopeless, lost), else_=columns.error)),
            (columns.unique_hash, case((hopeless, null()), else_=columns.unique_hash)),
            # After everything that depends on it: MySQL assigns from left to right.
            (columns.crashes, columns.crashes + ONE),
            *let_go(self._table),
        ]
        lapsed = adapter.by_index(lapsed, self._table, index_name(self._table, "take_over"))
        return adapter.take(self._table, lapsed, assignments, [raw(columns.id), columns.status])


def let_go(table: Table) -> Assignments:
    """Nobody holds the row any more; the raised epoch refuses a late finish."""
    columns = table.c
    return [
        (columns.epoch, columns.epoch + ONE),
        (columns.reserved_until, null()),
        (columns.reserved_by, null()),
    ]
