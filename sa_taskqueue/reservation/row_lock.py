"""The strategy of the textbooks: the lock on the task's row holds it, in the transaction that does the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.reservation.base import refuse_unsupported
from sa_taskqueue.reservation.crashes import crash_notes
from sa_taskqueue.reservation.mixed_use import warn_of_mixed_use
from sa_taskqueue.store import Renewed, RowLocks

if TYPE_CHECKING:
    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.store import Claimed, Pair, Settlement, TaskStore


class RowLock:
    """One transaction locks a task with SKIP LOCKED, runs its handler, writes the status and commits.

    A crash frees the row at once, and leaves no trace of the attempt: with ``count_crashes`` each attempt is noted
    before the work in the table of `CrashNoteMixin`, so that a task that kills its workers ends as FAILED.

    ``batch`` tasks (1 to 1,000) are locked together and committed by one COMMIT: a range handler takes those of its
    name, other handlers run one after the other, each undone to a savepoint of its own if it fails.
    """

    name = "row-lock"
    renewed = False
    claims_in_work = True
    reserves_apart = False

    def __init__(self, *, count_crashes: bool = False, batch: int = 1) -> None:
        if not isinstance(batch, int) or isinstance(batch, bool) or not 1 <= batch <= 1_000:
            raise InvalidSetting(setting="RowLock(batch=...)", value=batch, allowed="a whole number from 1 to 1,000")
        self.count_crashes = count_crashes
        self.batch = batch

    def bind(self, store: TaskStore, adapter: Adapter, *, lease: float, by: str, max_crashes: int = 3) -> None:  # noqa: ARG002  nothing expires
        """UnsupportedReservation without SKIP LOCKED; MissingTable if crashes have no table to be counted in."""
        refuse_unsupported(self.name, adapter)
        self._store = store
        self._adapter = adapter
        self._rows = RowLocks(store.table, adapter)
        self._notes = crash_notes(store, "RowLock") if self.count_crashes else None
        self._by = by
        self._max_crashes = max_crashes

    def check(self, connection: Connection) -> None:
        """Nothing is needed but the table of tasks; a warning of workers that hold its tasks unseen."""
        warn_of_mixed_use(connection, self._store, self._adapter, self.name)

    def claim(self, connection: Connection, queue: str, limit: int) -> list[Claimed]:
        """Lock up to `limit` due tasks to the end of the transaction.

        Tasks on which a dead worker has left its note are counted as crashed instead, which wants a commit.
        """
        claims = self._rows.lock(connection, queue, limit)
        if self._notes is None:
            return claims
        return self._notes.count(connection, claims, max_crashes=self._max_crashes)

    def note(self, connection: Connection, claimed: Claimed) -> None:
        """Note, in a transaction of another connection, that the attempt begins."""
        if self._notes is not None:
            self._notes.write(connection, [claimed], self._by)

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:  # noqa: ARG002  likewise
        """A lock needs no renewal."""
        return Renewed({task for task, _ in held}, set())

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Write the outcomes. In another transaction than the work's, after that was undone, the epoch is the guard."""
        if len(settlements) > 1:
            # As few statements as there are kinds of ends. A claim shows the epoch as the end will raise it.
            unraised = [one._replace(epoch=one.epoch - 1) for one in settlements]
            changed = self._store.unmarked.settle(connection, unraised)
        else:
            changed = self._rows.settle(connection, settlements)
        self._forget([settlement.id for settlement in settlements], connection)
        return changed

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float = 0.0) -> set[UUID]:
        """Without a delay the end of the work's transaction gives the tasks back: only their notes are deleted."""
        ids = [task for task, _ in held]
        changed = self._rows.put_off(connection, held, delay=delay) if delay else set(ids)
        self._forget(ids, connection)
        return changed

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """SCHEDULED again for a worker that knows the name."""
        taken = self._rows.take(connection, held)
        changed = self._store.give_back_unknown(connection, taken, delay=delay, fail_after=fail_after)
        self._forget([task for task, _ in held], connection)
        return changed

    def let_go(self, ids: Sequence[UUID]) -> None:
        """Nothing: the end of the transaction has freed the rows."""

    def end(self, connection: Connection) -> None:
        """Nothing, likewise."""

    def _forget(self, ids: Sequence[UUID], connection: Connection) -> None:
        if self._notes is not None:
            self._notes.delete(connection, ids)
