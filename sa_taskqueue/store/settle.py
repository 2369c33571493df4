"""Writing how held tasks end: as few statements as there are kinds of ends, never one per task."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Double, Integer, String, Table, Text, case, func, literal_column, null

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.shapes import Assignments, Inputs
from sa_taskqueue.states import Status
from sa_taskqueue.store.claims import freed_at_start
from sa_taskqueue.store.fetching import in_parts
from sa_taskqueue.store.rows import Settlement
from sa_taskqueue.store.running import change_held

Source = Mapping[str, ColumnElement[Any]]


class Settling:
    """The finish of one table. Four kinds: completed with nothing to store, deleted, ended, to be tried again."""

    def __init__(self, table: Table, adapter: Adapter, *, status: Status = Status.RUNNING) -> None:
        self._table = table
        self._adapter = adapter
        self._lock = adapter.lock(table)
        self._claim_wrote = status is Status.RUNNING
        history: Inputs = {"new_error": Text(), "new_errors": Text()}
        ends: Inputs = {"new_status": String(9), "new_result": Text(), **history}
        again: Inputs = {"delay": Double(), "uncounted": Integer(), **history}
        self._completed = adapter.held(table, self._complete, {}, status=status)
        self._deleted = adapter.held(table, None, {}, status=status)
        self._ended = adapter.held(table, self._end, ends, status=status)
        self._again = adapter.held(table, self._try_again, again, status=status)

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Write the ends of the tasks still held; the ids of these. Waits for locks, in the order of the ids."""
        kinds: defaultdict[_Kind, list[Settlement]] = defaultdict(list)
        for settlement in settlements:
            kinds[_kind(settlement)].append(settlement)
        if len(kinds) > 1 and self._lock is not None:
            # One order over all kinds: each statement below locks only its own rows in order.
            ids = sorted(settlement.id for settlement in settlements)
            for part in in_parts(ids, self._adapter.longest_list):
                connection.execute(self._lock, {"ids": part})
        changed: set[UUID] = set()
        for kind, group in kinds.items():
            changed |= self._write(connection, kind, group)
        return changed

    def _write(self, connection: Connection, kind: _Kind, group: Sequence[Settlement]) -> set[UUID]:
        held = [(one.id, one.epoch) for one in group]
        match kind:
            case _Kind.COMPLETED:
                return change_held(connection, self._completed, held)
            case _Kind.DELETED:
                return change_held(connection, self._deleted, held)
            case _Kind.ENDED:
                ends = [(one.status.value, one.result, one.error, one.errors) for one in group]
                return change_held(connection, self._ended, held, ends)
            case _Kind.AGAIN:
                again = [(float(one.delay), int(not one.count_attempt), one.error, one.errors) for one in group]
                return change_held(connection, self._again, held, again)

    def _complete(self, _: Source) -> Assignments:
        return [(self._table.c.status, status_literal(Status.COMPLETED)), *self._over()]

    def _end(self, source: Source) -> Assignments:
        columns = self._table.c
        result = func.coalesce(self._adapter.json(source["new_result"]), columns.result)
        return [(columns.status, source["new_status"]), (columns.result, result), *self._history(source), *self._over()]

    def _try_again(self, source: Source) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        later = source["delay"] > literal_column("0")
        counted = columns.attempt if self._claim_wrote else columns.attempt + ONE
        unwritten = [] if self._claim_wrote else [(columns.epoch, columns.epoch + ONE), freed_at_start(self._table)]
        return [
            *unwritten,
            (columns.status, case((later, status_literal(Status.SCHEDULED)), else_=status_literal(Status.NEW))),
            (columns.scheduled_at, adapter.after(source["delay"])),
            (columns.ready_at, adapter.clock()),
            (columns.attempt, counted - source["uncounted"]),
            (columns.reserved_until, null()),
            (columns.reserved_by, null()),
            *self._history(source),
        ]

    def _claimed(self) -> Assignments:
        """What a claim that wrote nothing has left to the finish; the raised epoch refuses a second one."""
        columns = self._table.c
        if self._claim_wrote:
            return []
        return [(columns.attempt, columns.attempt + ONE), (columns.epoch, columns.epoch + ONE)]

    def _history(self, source: Source) -> Assignments:
        columns, json = self._table.c, self._adapter.json
        return [
            (columns.error, func.coalesce(json(source["new_error"]), columns.error)),
            (columns.errors, func.coalesce(json(source["new_errors"]), columns.errors)),
        ]

    def _over(self) -> Assignments:
        """Nobody holds the row, and its unique key is free."""
        columns = self._table.c
        return [
            *self._claimed(),
            (columns.finished_at, self._adapter.clock()),
            (columns.reserved_until, null()),
            (columns.reserved_by, null()),
            (columns.unique_hash, null()),
        ]


class _Kind(enum.Enum):
    COMPLETED = enum.auto()
    DELETED = enum.auto()
    ENDED = enum.auto()
    AGAIN = enum.auto()


def _kind(one: Settlement) -> _Kind:
    if one.status == Status.SCHEDULED:
        return _Kind.AGAIN
    if one.delete:
        return _Kind.DELETED
    plain = one.result is None and one.error is None and one.errors is None
    return _Kind.COMPLETED if plain and one.status == Status.COMPLETED else _Kind.ENDED
