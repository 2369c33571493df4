"""Rows of a table of reservations (`ReservationMixin`): who holds which task, beside the table of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Float, Table, bindparam, delete, inspect

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.shapes import ReservationShape
from sa_taskqueue.exceptions import SchemaMissing
from sa_taskqueue.store.unmarked import due

Reserved = tuple[UUID, UUID]
"""A reservation as it is renewed and removed: the task's id, and the token of the claim."""


class Reservations:
    """The statements of one table of reservations for one table of tasks."""

    def __init__(self, tasks: Table, table: Table, adapter: Adapter, shape: ReservationShape) -> None:
        self.table = table
        self._shape = shape
        live = (table.c.id == tasks.c.id) & (table.c.reserved_until > adapter.statement_clock())
        self._free = due(tasks, adapter).outerjoin_from(tasks, table, live).where(table.c.id.is_(None))
        old = adapter.ago(bindparam("age", type_=Float()))
        self._sweep = delete(table).where(table.c.reserved_until < old)

    @property
    def transactional(self) -> bool:
        """Whether a removal is undone with the transaction that it is part of."""
        return self._shape.transactional

    def check(self, connection: Connection) -> None:
        """SchemaMissing, if the database has no such table."""
        if not inspect(connection).has_table(self.table.name, schema=self.table.schema):
            raise SchemaMissing(table=self.table.fullname)

    def candidates(self, connection: Connection, queue: str, limit: int) -> list[UUID]:
        """The ids of due tasks that nobody has reserved, in the order of the claim."""
        return list(connection.execute(self._free, {"of_queue": queue, "at_most": limit}).scalars())

    def reserve(self, connection: Connection, ids: Sequence[UUID], token: UUID, *, lease: float) -> set[UUID]:
        """Reserve what is free or expired, for ``lease`` seconds; the ids got."""
        if not ids:
            return set()
        values = {"packed": self._shape.pack(sorted(ids)), "token": token, "lease": lease}
        result = connection.execute(self._shape.reserve, values)
        return set(result.scalars()) if self._shape.returns else self.mine(connection, [(each, token) for each in ids])

    def renew(self, connection: Connection, reserved: Sequence[Reserved], *, lease: float) -> set[UUID]:
        """Prolong what is still under its token, but for rows that are locked; the ids prolonged."""
        if not reserved:
            return set()
        result = connection.execute(self._shape.renew, {**_parameters(reserved), "lease": lease})
        return set(result.scalars()) if self._shape.returns else self.mine(connection, reserved)

    def mine(self, connection: Connection, reserved: Sequence[Reserved]) -> set[UUID]:
        """Which are under their token."""
        return set(connection.execute(self._shape.mine, _parameters(reserved)).scalars()) if reserved else set()

    def remove(self, connection: Connection, reserved: Sequence[Reserved]) -> None:
        """Remove what is still under its token."""
        if reserved:
            connection.execute(self._shape.remove, _parameters(reserved))

    def sweep(self, connection: Connection, age: float) -> None:
        """Remove what expired more than ``age`` seconds ago: reservations of dead workers for tasks that have ended."""
        connection.execute(self._sweep, {"age": age})


def _parameters(reserved: Sequence[Reserved]) -> dict[str, Any]:
    return {"ids": [task for task, _ in reserved], "tokens": [token for _, token in reserved]}
