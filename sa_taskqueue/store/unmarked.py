"""Tasks that are held without a word of it in their row: NEW until the finish, which alone raises attempt and epoch.

Who holds them is said elsewhere, by a lock of a connection or by a row of another table. A holder that was lost and the
one after it know the same epoch; the first of them to commit raises it, and the other's finish is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Float, Integer, Table, Unicode, bindparam, case, literal_column, select
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.base import Adapter, status_literal
from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.shapes import AnySelect, Assignments
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import Status
from sa_taskqueue.store.claims import Claims
from sa_taskqueue.store.leases import Source, let_go
from sa_taskqueue.store.reading import ClaimReader, Unreadable, raw
from sa_taskqueue.store.rows import Claimed, Pair, Settlement
from sa_taskqueue.store.running import change_held
from sa_taskqueue.store.settle import Settling
from sa_taskqueue.store.unknown import UnknownNames


class Unmarked:
    """What is done with such tasks of one table. The connection may be in AUTOCOMMIT, but not for `settle`."""

    def __init__(self, table: Table, adapter: Adapter, claims: Claims) -> None:
        self._table = table
        self._adapter = adapter
        self._claims = claims
        self._reader = ClaimReader(table, adapter)
        self._due = due(table, adapter).offset(bindparam("from_row", type_=Integer()))
        self._rows = self._by_key(*self._reader.columns())
        self._raw_ids = self._by_key(raw(table.c.id))
        self._standing = self._by_key(table.c.id, table.c.epoch)
        self._settling = Settling(table, adapter, status=Status.NEW)

    def candidates(self, connection: Connection, queue: str, limit: int, *, offset: int) -> list[UUID]:
        """The ids of due tasks in the order of the claim, whoever holds them; the first ``offset`` are left out."""
        values = {"of_queue": queue, "at_most": limit, "from_row": offset}
        return list(connection.execute(self._due, values).scalars())

    def read(self, connection: Connection, ids: Sequence[UUID]) -> list[Claimed]:
        """Those of the reserved tasks that are still due, in a statement of its own: one may have ended meanwhile.

        A row that cannot be fetched or converted becomes FAILED and harms only itself.
        """
        if not ids:
            return []
        claimed, unreadable = self._reader.read(connection.dialect, self._fetch(connection, ids))
        for row in unreadable:
            self._claims.fail_unreadable(connection, row)
        return [task._replace(attempt=task.attempt + 1) for task in claimed]

    def standing(self, connection: Connection, held: Sequence[Pair]) -> set[UUID]:
        """Which of the held tasks still have that epoch and have not ended."""
        if not held:
            return set()
        epochs = dict(held)
        rows = connection.execute(self._standing, {"ids": list(epochs)})
        return {task for task, epoch in rows if epochs[task] == epoch}

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """End the tasks; the ids of those that nobody has ended or touched since they were read."""
        return self._settling.settle(connection, settlements)

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float) -> set[UUID]:
        """Give back: due at once, or SCHEDULED after ``delay`` seconds."""
        return change_held(connection, self._release, held, values={"delay": delay})

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """As `TaskStore.give_back_unknown`."""
        return self._unknown.give_back(connection, held, delay=delay, fail_after=fail_after)

    @cached_property
    def _release(self) -> Any:
        return self._adapter.held(self._table, self._released, {}, status=Status.NEW)

    @cached_property
    def _unknown(self) -> UnknownNames:
        return UnknownNames(self._table, self._adapter, status=Status.NEW)

    def _fetch(self, connection: Connection, ids: Sequence[UUID]) -> list[Any]:
        """The rows; where the driver fails on one, it is found by reading them one by one."""
        try:
            return list(connection.execute(self._rows, {"ids": list(ids)}).fetchall())
        except (DBAPIError, ValueError) as error:
            if self._adapter.classify(error) is not ErrorKind.UNREADABLE:
                raise
            if len(ids) > 1:
                return [row for task in ids for row in self._fetch(connection, [task])]
            raw_id = connection.execute(self._raw_ids, {"ids": list(ids)}).scalar_one()
            self._claims.fail_unreadable(
                connection, Unreadable(raw_id, f"{type(error).__name__}: {driver_error(error)}")
            )
            return []

    def _by_key(self, *columns: Any) -> AnySelect:
        """Of the rows ``ids`` those still due, found by the primary key and not by the index of all that is due."""
        table = self._table
        status = table.c.status.concat(literal_column("''"))
        these = table.c.id.in_(bindparam("ids", expanding=True))
        return select(*columns).where(these, status == status_literal(Status.NEW))

    def _released(self, _: Source) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        delay = bindparam("delay", type_=Float())
        later = delay > literal_column("0")
        return [
            (columns.status, case((later, status_literal(Status.SCHEDULED)), else_=status_literal(Status.NEW))),
            (columns.scheduled_at, case((later, adapter.after(delay)), else_=columns.scheduled_at)),
            (columns.ready_at, adapter.clock()),
            *let_go(self._table),
        ]


def due(table: Table, adapter: Adapter) -> AnySelect:
    """``at_most`` ids of due tasks of the queue ``of_queue``, in the order of the claim; reads, and locks nothing."""
    columns = table.c
    found = (
        select(columns.id)
        .where(columns.queue == bindparam("of_queue", type_=Unicode()), columns.status == status_literal(Status.NEW))
        .order_by(columns.priority, columns.ready_at, columns.id)
        .limit(bindparam("at_most", type_=Integer()))
    )
    return adapter.by_index(found, table, index_name(table, "claim"))
