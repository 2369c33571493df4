"""The mutation that the checker must catch: a worker that trusts its leases for ever and finishes without a guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, update

from sa_taskqueue.reservation.lease import Lease
from sa_taskqueue.store import Renewed
from sa_taskqueue.worker.held import HeldTasks


class UnfencedLease(Lease):
    """`Lease` whose finish names the id only and claims to have changed everything."""

    def bind(self, store: Any, *details: Any, **options: Any) -> None:
        super().bind(store, *details, **options)
        table = store.table
        self._finish = update(table).where(table.c.id == bindparam("finished"))

    def settle(self, connection: Connection, settlements: Sequence[Any]) -> set[UUID]:
        for settlement in settlements:
            values = {"status": settlement.status, "reserved_until": None, "reserved_by": None}
            connection.execute(self._finish.values(values), {"finished": settlement.id})
        return {settlement.id for settlement in settlements}

    def renew(self, connection: Connection, held: Sequence[Any], *, lease: float) -> Renewed:
        super().renew(connection, held, lease=lease)
        return Renewed({task_id for task_id, _ in held}, set())


def trust_for_ever() -> None:
    """Switch off the part of the fence that is in the worker: nothing is ever seen as lost or expired."""
    HeldTasks.mark_lost = lambda self, pair: None  # type: ignore[method-assign]
    HeldTasks.expired = lambda self, now: []  # type: ignore[method-assign]
