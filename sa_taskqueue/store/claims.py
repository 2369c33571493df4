"""Taking due tasks of one queue."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Float, Integer, String, Table, bindparam, case, null, select, update

from ..adapters.base import Adapter, status_literal
from ..adapters.shapes import Assignments
from ..states import Status
from .reading import ClaimReader, Unreadable
from .rows import Claimed
from .running import take


class Claims:
    """The claim of one table: its statements, built once, and what runs them."""

    def __init__(self, table: Table, adapter: Adapter) -> None:
        self._table = table
        self._adapter = adapter
        self._reader = ClaimReader(table, adapter)
        self._shape = adapter.take(table, self._due(), self._assignments(), self._reader.columns())
        self._spoil = _failing(table, adapter)

    def claim(self, connection: Connection, queue: str, limit: int, *, lease: float, by: str) -> list[Claimed]:
        """Up to ``limit`` due tasks in the order of the claim; each is held for ``lease`` seconds."""
        values = {"of_queue": queue, "at_most": limit, "lease": lease, "holder": by}
        rows = take(connection, self._shape, values)
        claimed, unreadable = self._reader.read(connection.dialect, rows)
        for row in unreadable:
            self.fail_unreadable(connection, row)
        return claimed

    def fail_unreadable(self, connection: Connection, row: Unreadable) -> None:
        """FAILED with code ``undecodable``: the row harms only itself, and an operator may mend and revive it."""
        error = json.dumps({"code": "undecodable", "message": row.reason})
        connection.execute(self._spoil, {"raw_id": row.raw_id, "new_error": error})

    def _due(self) -> Any:
        """Equality and the order of the claim index, nothing else: so no row is locked that is not returned."""
        columns = self._table.c
        return (
            select(columns.id)
            .where(columns.queue == bindparam("of_queue", type_=String()), columns.status == status_literal(Status.NEW))
            .order_by(columns.priority, columns.ready_at, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )

    def _assignments(self) -> Assignments:
        columns = self._table.c
        freed = case((columns.unique_until == "start", null()), else_=columns.unique_hash)
        return [
            (columns.status, status_literal(Status.RUNNING)),
            (columns.attempt, columns.attempt + 1),
            (columns.epoch, columns.epoch + 1),
            (columns.reserved_until, self._adapter.after(bindparam("lease", type_=Float()))),
            (columns.reserved_by, bindparam("holder", type_=String())),
            (columns.unique_hash, freed),
        ]


def _failing(table: Table, adapter: Adapter) -> Any:
    columns = table.c
    return (
        update(table)
        .where(columns.id == bindparam("raw_id", type_=adapter.id_type()))
        .values(
            status=status_literal(Status.FAILED),
            error=bindparam("new_error", type_=columns.error.type),
            finished_at=adapter.clock(),
            epoch=columns.epoch + 1,
            reserved_until=null(),
            reserved_by=null(),
            unique_hash=null(),
        )
    )
