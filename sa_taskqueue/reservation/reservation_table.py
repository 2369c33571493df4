"""A strategy that reserves in a table of its own, which the server neither logs nor keeps over a crash."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import MissingTable
from sa_taskqueue.ids import new_id
from sa_taskqueue.reservation.base import refuse_unsupported
from sa_taskqueue.reservation.crashes import CrashCount, crash_notes
from sa_taskqueue.reservation.mixed_use import warn_of_mixed_use
from sa_taskqueue.store import Renewed
from sa_taskqueue.store.reservations import Reservations, Reserved

if TYPE_CHECKING:
    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.store import Claimed, Pair, Settlement, TaskStore

logger = logging.getLogger("sa_taskqueue.reservation")

ROUNDS = 3
"""Tries of one claim, when others were quicker to reserve what it had found."""

FULL_PAUSE = 5.0
"""Seconds without a claim after the table was full: it empties as tasks end."""


class ReservationTable:
    """Holds each task by a row of a second table, on PostgreSQL, MySQL 8 and MariaDB 10.6.

    The table of tasks is written only when a task ends. The reservation is renewed while the task is held and expires
    after the lease. When the table is emptied (a crash of the server, a standby that became the primary), tasks may run
    a second time; the first of two ends is accepted. Needs ``TaskQueue(reservations=...)``. A crash leaves no trace in
    the task: with ``count_crashes`` attempts are noted at the claim in the table of `CrashNoteMixin`.
    """

    name = "reservation-table"
    renewed = True
    claims_in_work = False
    reserves_apart = True

    def __init__(self, *, count_crashes: bool = False) -> None:
        self.count_crashes = count_crashes
        self._guard = threading.Lock()
        self._tokens: dict[UUID, UUID] = {}
        self._to_remove: list[Reserved] = []
        self._swept_at = time.monotonic()
        self._full_until = 0.0

    def bind(self, store: TaskStore, adapter: Adapter, *, lease: float, by: str, max_crashes: int = 3) -> None:
        """Learn the tables; UnsupportedReservation where there can be none, MissingTable where none is mapped."""
        refuse_unsupported(self.name, adapter)
        if store.reservations is None:
            raise MissingTable(
                feature="The reservation strategy reservation-table", mixin="ReservationMixin", argument="reservations"
            )
        shape = adapter.reservation_rows(store.reservations)
        if shape is None:
            raise NotImplementedError(f"{type(adapter).__name__} names the strategy without its statements")
        self._store = store
        self._adapter = adapter
        self._lease = lease
        self._reservations = Reservations(store.table, store.reservations, adapter, shape)
        notes = crash_notes(store, "ReservationTable") if self.count_crashes else None
        self._crashes = CrashCount(notes, by, max_crashes=max_crashes)

    def check(self, connection: Connection) -> None:
        """SchemaMissing, if the table of reservations is not there."""
        self._reservations.check(connection)
        warn_of_mixed_use(connection, self._store, self._adapter, self.name)

    def claim(self, connection: Connection, queue: str, limit: int) -> list[Claimed]:
        """Reserve up to `limit` due tasks, and read them again: one may have ended since it was found."""
        self._crashes.clear(connection)
        self._remove(connection)
        self._sweep(connection)
        claimed: list[Claimed] = []
        if time.monotonic() < self._full_until:
            return claimed
        for _ in range(ROUNDS):
            wanted = limit - len(claimed)
            found = self._reservations.candidates(connection, queue, wanted)
            claimed += self._reserve(connection, [task for task in found if task not in self._tokens])
            if len(found) < wanted or len(claimed) >= limit or self._full_until:
                break
        self._remove(connection)
        return claimed

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        """Prolong the reservations that are still this worker's; a row that is locked keeps its time."""
        reserved = self._of(task for task, _ in held)
        renewed = self._reservations.renew(connection, reserved, lease=lease)
        skipped = self._reservations.mine(connection, [pair for pair in reserved if pair[0] not in renewed])
        still = self._store.unmarked.standing(connection, [pair for pair in held if pair[0] in renewed | skipped])
        return Renewed(renewed & still, skipped & still)

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Write the outcomes, guarded by the epoch; the reservations go in the same transaction where they can."""
        changed = self._store.unmarked.settle(connection, settlements)
        self._over(connection, [one.id for one in settlements], changed)
        return changed

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float = 0.0) -> set[UUID]:
        """Raise the epoch, so that a late end is refused, and end the reservations."""
        changed = self._store.unmarked.release(connection, held, delay=delay)
        self._over(connection, [task for task, _ in held], changed)
        return changed

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """SCHEDULED for a worker that knows the name."""
        changed = self._store.unmarked.give_back_unknown(connection, held, delay=delay, fail_after=fail_after)
        self._over(connection, [task for task, _ in held], changed)
        return changed

    def let_go(self, ids: Sequence[UUID]) -> None:
        """Remove the reservations at the next claim: after the COMMIT, as a MEMORY table knows no transactions."""
        self._crashes.let_go(ids)
        with self._guard:
            self._to_remove += [(task, token) for task in ids if (token := self._tokens.pop(task, None)) is not None]

    def end(self, connection: Connection) -> None:
        """Remove what is left."""
        self._crashes.clear(connection)
        self._remove(connection)

    def _reserve(self, connection: Connection, ids: list[UUID]) -> list[Claimed]:
        token = new_id()
        with self._guard:
            self._tokens.update(dict.fromkeys(ids, token))
        claimed: list[Claimed] = []
        try:
            mine = self._take(connection, ids, token)
            found = self._store.unmarked.read(connection, [task for task in ids if task in mine])
            claimed = self._crashes.begin(connection, found)
        finally:
            # After an error too: whatever was reserved under this token is not held.
            kept = {task.id for task in claimed}
            self.let_go([task for task in ids if task not in kept])
        return claimed

    def _take(self, connection: Connection, ids: list[UUID], token: UUID) -> set[UUID]:
        """Reserve; where the table is full, what had room is kept, and nothing more is claimed for a while."""
        self._full_until = 0.0
        try:
            return self._reservations.reserve(connection, ids, token, lease=self._lease)
        except DBAPIError as error:
            if self._adapter.classify(error) is not ErrorKind.DISK_FULL:
                raise
        self._full_until = time.monotonic() + FULL_PAUSE
        logger.error(
            "the table %s is full: nothing is claimed for %g s. Raise max_heap_table_size and run ALTER TABLE %s "
            "ENGINE=MEMORY, or run fewer workers",
            self._reservations.table.fullname,
            FULL_PAUSE,
            self._reservations.table.fullname,
        )
        return self._reservations.mine(connection, [(task, token) for task in ids])

    def _of(self, ids: Iterable[UUID]) -> list[Reserved]:
        with self._guard:
            return [(task, token) for task in ids if (token := self._tokens.get(task)) is not None]

    def _over(self, connection: Connection, ids: Sequence[UUID], changed: Collection[UUID]) -> None:
        """Remove, in the transaction of the tasks' ends, what holds them; the reservations only where they can be."""
        self._crashes.end(connection, ids, changed)
        if self._reservations.transactional:
            self._reservations.remove(connection, self._of(ids))

    def _remove(self, connection: Connection) -> None:
        with self._guard:
            reserved, self._to_remove = self._to_remove, []
        self._reservations.remove(connection, reserved)

    def _sweep(self, connection: Connection) -> None:
        """Once in a lease. A reservation that old is not renewed any more, or the task is free for all anyway."""
        now = time.monotonic()
        if now - self._swept_at >= self._lease:
            self._swept_at = now
            self._reservations.sweep(connection, self._lease)
