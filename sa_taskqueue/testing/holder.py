"""A strategy as a worker drives it, one step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Pair, Renewed, Settlement, TaskStore
from sa_taskqueue.testing.models import RESERVED, TASKS

if TYPE_CHECKING:
    from sa_taskqueue.reservation import Reservation
    from sa_taskqueue.testing.database import Database, Line


class Holder:
    """Claims on one connection and finishes on another, or, where the claim is in the work, on the same one."""

    def __init__(self, database: Database, reservation: Reservation, *, lease: float = 60.0, by: str = "a") -> None:
        adapter = database.adapter
        reserved = RESERVED if "reservation-table" in adapter.reservations else None
        self.store = TaskStore(TASKS, adapter, reservations=reserved)
        self.reservation = reservation
        reservation.bind(self.store, adapter, lease=lease, by=by)
        self.claims = database.line(autocommit=reservation.reserves_apart)
        # SQLite has one writer; two connections would only wait for each other.
        self.in_work = reservation.claims_in_work
        self.finishes: Line = self.claims if self.in_work or adapter.single_writer else database.line()
        self.claims.run(reservation.check)
        self.claims.commit()

    def claim(self, limit: int = 10, queue: str = "default") -> list[Claimed]:
        """Take tasks; with a row lock the transaction stays open."""
        claimed = self.claims.run(self.reservation.claim, queue, limit)
        if not self.in_work:
            self.claims.commit()
        return claimed

    def settle(self, tasks: Sequence[Claimed], status: Status = Status.COMPLETED, **written: Any) -> set[UUID]:
        """End the tasks, and forget them as the worker does; the ids of those that were still held."""
        ends = [Settlement(task.id, task.epoch, status, **written) for task in tasks]
        return self._finish(tasks, self.finishes.run(self.reservation.settle, ends))

    def release(self, tasks: Sequence[Claimed], delay: float = 0.0) -> set[UUID]:
        """Give the tasks back."""
        return self._finish(tasks, self.finishes.run(self.reservation.release, _pairs(tasks), delay=delay))

    def give_back_unknown(self, tasks: Sequence[Claimed], *, delay: float, fail_after: float) -> set[UUID]:
        """Give tasks back whose name is not known."""
        give_back = self.reservation.give_back_unknown
        given = self.finishes.run(give_back, _pairs(tasks), delay=delay, fail_after=fail_after)
        return self._finish(tasks, given)

    def renew(self, tasks: Sequence[Claimed], lease: float = 60.0) -> Renewed:
        """Hold the tasks for longer."""
        line = self.claims if self.reservation.reserves_apart else self.finishes
        renewed = line.run(self.reservation.renew, _pairs(tasks), lease=lease)
        if not self.in_work:
            line.commit()
        return renewed

    def close(self) -> None:
        """Close the connections without a word, as a worker does that dies."""
        self.claims.close()
        self.finishes.close()

    def _finish(self, tasks: Sequence[Claimed], changed: set[UUID]) -> set[UUID]:
        self.finishes.commit()
        self.reservation.let_go([task.id for task in tasks])
        return changed


def _pairs(tasks: Sequence[Claimed]) -> list[Pair]:
    return [(task.id, task.epoch) for task in tasks]
