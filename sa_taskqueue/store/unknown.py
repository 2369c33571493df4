"""Giving back tasks whose name the worker does not know, and failing those that nobody knew for too long.

How long is counted from the first look, not from the creation: a task may have been scheduled for next month. The row's
error keeps that moment. It counts only if every claim since then ended here, which the epoch kept beside it tells: a
worker that knew the name, or an operator, ends the count.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Float, String, Table, Text, bindparam, case, null, select

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.shapes import Assignments
from sa_taskqueue.states import Status
from sa_taskqueue.store.fetching import in_parts
from sa_taskqueue.store.leases import let_go
from sa_taskqueue.store.new_rows import database_now
from sa_taskqueue.store.rows import Pair
from sa_taskqueue.store.running import change_held

CODE = "unknown_task"


class UnknownNames:
    """The give-back of one table."""

    def __init__(self, table: Table, adapter: Adapter, *, status: Status = Status.RUNNING) -> None:
        self._table = table
        self._adapter = adapter
        self._claim_wrote = status is Status.RUNNING
        self._errors = select(table.c.id, table.c.error).where(table.c.id.in_(bindparam("ids", expanding=True)))
        inputs = {"new_status": String(9), "new_error": Text()}
        self._give_back = adapter.held(table, self._given_back, inputs, status=status)

    def give_back(self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float) -> set[UUID]:
        """SCHEDULED after ``delay`` seconds, attempt not counted; FAILED once the first look is so long ago."""
        if not held:
            return set()
        now = database_now(connection)
        errors: dict[UUID, str | None] = {
            row.id: row.error
            for part in in_parts([task for task, _ in held], self._adapter.longest_list)
            for row in connection.execute(self._errors, {"ids": part})
        }
        inputs = []
        raised = 2 if self._claim_wrote else 1  # by the give-back, and by the next claim where that writes
        for task, epoch in held:
            since = _first_look(errors.get(task), epoch) or now
            too_long = (now - since).total_seconds() >= fail_after
            inputs.append(
                (Status.FAILED.value, _failed()) if too_long else (Status.SCHEDULED.value, _seen(since, epoch + raised))
            )
        return change_held(connection, self._give_back, held, inputs, values={"delay": delay})

    def _given_back(self, source: Mapping[str, ColumnElement[Any]]) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        failed = source["new_status"] == status_literal(Status.FAILED)
        return [
            (columns.status, source["new_status"]),
            (columns.scheduled_at, adapter.after(bindparam("delay", type_=Float()))),
            (columns.finished_at, case((failed, adapter.clock()), else_=null())),
            (columns.error, adapter.json(source["new_error"])),
            (columns.unique_hash, case((failed, null()), else_=columns.unique_hash)),
            (columns.attempt, columns.attempt - ONE if self._claim_wrote else columns.attempt),
            *let_go(self._table),
        ]


def _seen(since: dt.datetime, next_epoch: int) -> str:
    """`next_epoch` is that of the next look, if nothing else happens to the task before."""
    message = "No worker has known the name of this task yet."
    return json.dumps({"code": CODE, "message": message, "since": since.isoformat(), "next_epoch": next_epoch})


def _failed() -> str:
    return json.dumps({"code": CODE, "message": "No worker knew the name of this task in time."})


def _first_look(error: str | None, epoch: int) -> dt.datetime | None:
    """The moment that the look before this one has kept; None if there was none, or something came between."""
    try:
        kept = json.loads(error or "null")
        if isinstance(kept, dict) and kept.get("code") == CODE and kept.get("next_epoch") == epoch:
            since = dt.datetime.fromisoformat(kept["since"])
            return since if since.tzinfo is not None else None
    except (KeyError, TypeError, ValueError):
        return None  # somebody else wrote it: the count begins anew
    return None
