"""Strategies with one mistake each, which the runs must catch, and right ones that are slow where the mistake would be.

``unguarded``: the finish names the id only, and the worker trusts what it holds for ever. ``blind``: what was reserved
is not read again, though it may have ended since it was found. ``unlocked``: found and not locked.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, update

from sa_taskqueue.adapters.shapes import ReturningClaim
from sa_taskqueue.reservation import AdvisoryLock, Lease, Reservation, ReservationTable, RowLock
from sa_taskqueue.store import Renewed
from sa_taskqueue.worker.held import HeldTasks

LONGEST_PAUSE = 1.0
"""Seconds between finding tasks and reserving them, now more, now less: time for another worker to end some, and on
MySQL and MariaDB to come back to its next claim, which is when it removes its reservations."""


class UnguardedLease(Lease):
    """`Lease` whose finish claims to have changed everything."""

    def settle(self, connection: Connection, settlements: Sequence[Any]) -> set[UUID]:
        return finish_unguarded(self._store.table, connection, settlements)

    def renew(self, connection: Connection, held: Sequence[Any], *, lease: float) -> Renewed:
        super().renew(connection, held, lease=lease)
        return Renewed({task_id for task_id, _ in held}, set())


class UnguardedReservationTable(ReservationTable):
    """`ReservationTable` with the same mistake."""

    def settle(self, connection: Connection, settlements: Sequence[Any]) -> set[UUID]:
        return finish_unguarded(self._store.table, connection, settlements)


class SlowAdvisoryLock(AdvisoryLock):
    def bind(self, store: Any, *details: Any, **options: Any) -> None:
        super().bind(store, *details, **options)
        slow_down(store.unmarked)


class SlowReservationTable(ReservationTable):
    def bind(self, store: Any, *details: Any, **options: Any) -> None:
        super().bind(store, *details, **options)
        slow_down(self._reservations)


class BlindAdvisoryLock(SlowAdvisoryLock):
    def bind(self, store: Any, *details: Any, **options: Any) -> None:
        super().bind(store, *details, **options)
        blind(store)


class BlindReservationTable(SlowReservationTable):
    def bind(self, store: Any, *details: Any, **options: Any) -> None:
        super().bind(store, *details, **options)
        blind(store)


class UnlockedRowLock(RowLock):
    def bind(self, store: Any, adapter: Any, **options: Any) -> None:
        super().bind(store, adapter, **options)
        claims = self._rows._claims
        columns = claims._as_they_will_be(claims._reader.columns())
        claims._shape = ReturningClaim(claims._due().with_only_columns(*columns))


def finish_unguarded(table: Any, connection: Connection, settlements: Sequence[Any]) -> set[UUID]:
    for settlement in settlements:
        values = {"status": settlement.status, "reserved_until": None, "reserved_by": None}
        finish = update(table).where(table.c.id == bindparam("finished")).values(values)
        connection.execute(finish, {"finished": settlement.id})
    return {settlement.id for settlement in settlements}


def slow_down(looked_at: Any) -> None:
    candidates, never = looked_at.candidates, threading.Event()

    def slowly(*details: Any, **options: Any) -> Any:
        found = candidates(*details, **options)
        never.wait(random.uniform(0.0, LONGEST_PAUSE))
        return found

    looked_at.candidates = slowly


def blind(store: Any) -> None:
    unmarked = store.unmarked
    these = store.table.c.id.in_(bindparam("ids", expanding=True))
    unmarked._rows = select(*unmarked._reader.columns()).where(these)


def trust_for_ever() -> None:
    """Switch off the part of the fence that is in the worker: nothing is ever seen as lost or expired."""
    HeldTasks.mark_lost = lambda self, pair: None  # type: ignore[method-assign]
    HeldTasks.expired = lambda self, now: []  # type: ignore[method-assign]


MUTANTS: Mapping[str, Callable[[], Reservation]] = {
    "unguarded-lease": UnguardedLease,
    "unguarded-reservation-table": UnguardedReservationTable,
    "slow-advisory-lock": SlowAdvisoryLock,
    "slow-reservation-table": SlowReservationTable,
    "blind-advisory-lock": BlindAdvisoryLock,
    "blind-reservation-table": BlindReservationTable,
    "unlocked-row-lock": UnlockedRowLock,
}
