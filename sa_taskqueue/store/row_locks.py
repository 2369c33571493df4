"""Tasks held by nothing but the lock on their row: read and locked, then written once, at the end.

The row is NEW until then, and the guard of the end is its epoch as it was read. Tasks are shown as they will be after
the end: `attempt` and `epoch` raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Connection,
    Delete,
    Float,
    Integer,
    String,
    Table,
    Text,
    Update,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    null,
    update,
)

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.shapes import Assignments
from sa_taskqueue.states import Status
from sa_taskqueue.store.claims import Claims
from sa_taskqueue.store.rows import Claimed, Pair, Settlement


class RowLocks:
    """The statements of one table, built once."""

    def __init__(self, table: Table, adapter: Adapter) -> None:
        self._table = table
        self._adapter = adapter
        self._claims = Claims(table, adapter, lock_only=True)
        self._ended = self._change([(table.c.status, bindparam("new_status", type_=String())), *self._end()])
        self._again = self._change(self._try_again())
        self._deleted = self._guarded(delete(table))
        self._put_off = self._change(self._later())
        running = (table.c.status, status_literal(Status.RUNNING))
        self._running = self._change([running, (table.c.attempt, table.c.attempt + ONE)])

    def lock(self, connection: Connection, queue: str, limit: int) -> list[Claimed]:
        """Up to ``limit`` due tasks in the order of the claim, locked to the end of this transaction."""
        return self._claims.claim(connection, queue, limit, lease=0.0, by="", memory=None)

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Write how tasks ended; the ids of those that nobody else has ended since they were read."""
        return {one.id for one in sorted(settlements) if self._settled(connection, one)}

    def put_off(self, connection: Connection, held: Sequence[Pair], *, delay: float) -> set[UUID]:
        """SCHEDULED after ``delay`` seconds, the attempt not counted."""
        return {pair[0] for pair in sorted(held) if self._changed(connection, self._put_off, pair, delay=delay)}

    def take(self, connection: Connection, held: Sequence[Pair]) -> list[Pair]:
        """Make locked tasks RUNNING, as a lease's claim would, for what is only done to such; those that were so made.

        For the rest of this transaction: nobody else is to see them so.
        """
        return [pair for pair in sorted(held) if self._changed(connection, self._running, pair)]

    def _settled(self, connection: Connection, one: Settlement) -> bool:
        pair = (one.id, one.epoch)
        if one.status != Status.SCHEDULED and one.delete:
            return self._changed(connection, self._deleted, pair)
        written = {"new_error": one.error, "new_errors": one.errors}
        if one.status == Status.SCHEDULED:
            counted = int(one.count_attempt)
            return self._changed(connection, self._again, pair, delay=float(one.delay), counted=counted, **written)
        ended = {"new_status": one.status.value, "new_result": one.result}
        return self._changed(connection, self._ended, pair, **ended, **written)

    def _changed(self, connection: Connection, change: Update | Delete, pair: Pair, **values: Any) -> bool:
        task, epoch = pair
        return connection.execute(change, {"old_id": task, "old_epoch": epoch - 1, **values}).rowcount == 1

    def _guarded(self, change: Any) -> Any:
        columns = self._table.c
        return change.where(
            columns.id == bindparam("old_id", type_=columns.id.type),
            columns.epoch == bindparam("old_epoch", type_=BigInteger()),
            columns.status == status_literal(Status.NEW),
        )

    def _change(self, assignments: Assignments) -> Any:
        columns = self._table.c
        return self._guarded(update(self._table).ordered_values(*assignments, (columns.epoch, columns.epoch + ONE)))

    def _end(self) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        result = adapter.json(bindparam("new_result", type_=Text()))
        return [
            (columns.attempt, columns.attempt + ONE),
            (columns.result, func.coalesce(result, columns.result)),
            *self._history(),
            (columns.finished_at, adapter.clock()),
            (columns.unique_hash, null()),
        ]

    def _try_again(self) -> Assignments:
        columns = self._table.c
        started = (columns.unique_until == literal_column("'start'")) & (
            bindparam("counted", type_=Integer()) == literal_column("1")
        )
        return [
            *self._later(),
            (columns.attempt, columns.attempt + bindparam("counted", type_=Integer())),
            *self._history(),
            # A key kept until the start is free once an attempt has run, as it is with a lease.
            (columns.unique_hash, case((started, null()), else_=columns.unique_hash)),
        ]

    def _later(self) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        delay = bindparam("delay", type_=Float())
        later = delay > literal_column("0")
        return [
            (columns.status, case((later, status_literal(Status.SCHEDULED)), else_=status_literal(Status.NEW))),
            (columns.scheduled_at, adapter.after(delay)),
            (columns.ready_at, adapter.clock()),
        ]

    def _history(self) -> Assignments:
        columns, json = self._table.c, self._adapter.json
        return [
            (columns.error, func.coalesce(json(bindparam("new_error", type_=Text())), columns.error)),
            (columns.errors, func.coalesce(json(bindparam("new_errors", type_=Text())), columns.errors)),
        ]
