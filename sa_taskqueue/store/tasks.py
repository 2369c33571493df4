"""`TaskStore`: everything the library does to one table of tasks, as sync functions over a Connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from sqlalchemy import Connection, Table, inspect, select

from sa_taskqueue.adapters.base import Adapter, status_literal
from sa_taskqueue.states import Status
from sa_taskqueue.store.claims import Claims
from sa_taskqueue.store.crash_notes import CrashNotes
from sa_taskqueue.store.drift import check_columns, check_schema, check_writable
from sa_taskqueue.store.leases import Leases
from sa_taskqueue.store.memory import ClaimMemory
from sa_taskqueue.store.promotion import Promotion
from sa_taskqueue.store.pruning import prune
from sa_taskqueue.store.rows import Claimed, Pair, Renewed, Settlement, TakenOver
from sa_taskqueue.store.settle import Settling
from sa_taskqueue.store.unknown import UnknownNames
from sa_taskqueue.store.unmarked import Unmarked


class TaskStore:
    """The statements of one table, built once for one database, and what runs them.

    Every method takes a Connection that is already in a transaction and never commits. Durations are in seconds, the
    clock is the database's.
    """

    def __init__(
        self,
        table: Table,
        adapter: Adapter,
        crash_notes: Table | None = None,
        *,
        reservations: Table | None = None,
    ) -> None:
        self.table = table
        self.adapter = adapter
        self.crash_notes = None if crash_notes is None else CrashNotes(table, crash_notes, adapter)
        self.reservations = reservations
        """The table of reservations that belongs to it, where the strategy `ReservationTable` is to be used."""
        self._claims = Claims(table, adapter)
        self._leases = Leases(table, adapter)
        self._promotion = Promotion(table, adapter)
        self._settling = Settling(table, adapter)
        self._unknown = UnknownNames(table, adapter)

    @cached_property
    def unmarked(self) -> Unmarked:
        """What is done with tasks that are held without a word of it in their row."""
        return Unmarked(self.table, self.adapter, self._claims)

    def claim_memory(self) -> ClaimMemory | None:
        """What a worker keeps per queue of how far it has claimed; None where the database gains nothing by it."""
        return self._claims.memory()

    def claim(
        self,
        connection: Connection,
        queue: str,
        limit: int,
        *,
        lease: float,
        by: str,
        memory: ClaimMemory | None = None,
    ) -> list[Claimed]:
        """Take up to ``limit`` due tasks of one queue, in the order of priority, for ``lease`` seconds."""
        return self._claims.claim(connection, queue, limit, lease=lease, by=by, memory=memory)

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """End held tasks; the ids of those that were still held and are changed now."""
        return self._settling.settle(connection, settlements)

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        """Hold tasks for ``lease`` more seconds from now; what was extended, and what is held as long as before."""
        return self._leases.renew(connection, held, lease=lease)

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float = 0.0) -> set[UUID]:
        """Give held tasks back, the attempt not counted, due after ``delay``; the ids changed."""
        return self._leases.release(connection, held, delay=delay)

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """As `release`, never NEW; FAILED with code ``unknown_task`` ``fail_after`` seconds after the first time."""
        return self._unknown.give_back(connection, held, delay=delay, fail_after=fail_after)

    def take_over(self, connection: Connection, limit: int, *, max_crashes: int) -> TakenOver:
        """Free, or fail for good, up to ``limit`` tasks whose lease has ended."""
        return self._leases.take_over(connection, limit, max_crashes=max_crashes)

    def promote(self, connection: Connection, limit: int) -> int:
        """Make up to ``limit`` due SCHEDULED tasks NEW; how many were."""
        return self._promotion.promote(connection, limit)

    def prune(self, connection: Connection, status: Status, older_than: timedelta, limit: int) -> int:
        """Delete up to ``limit`` tasks that ended longer ago; fewer when no more can be deleted now."""
        return prune(connection, self.table, status, older_than, limit)

    def check_schema(self, connection: Connection) -> None:
        """Raise the named error if the table is not as the model says, or cannot be written to."""
        check_schema(connection, self.table)
        if self.crash_notes is not None:
            check_columns(connection, self.crash_notes.table)
        check_writable(connection, self.table)

    def any_running(self, connection: Connection) -> bool:
        """Whether a task is held by a strategy that writes its row."""
        status = self.table.c.status == status_literal(Status.RUNNING)
        return connection.execute(select(self.table.c.id).where(status).limit(1)).first() is not None

    def any_reserved(self, connection: Connection) -> bool:
        """Whether there is a live reservation; not where there is no table of them, or it was not created."""
        table = self.reservations
        if table is None or not inspect(connection).has_table(table.name, schema=table.schema):
            return False
        live = select(table.c.id).where(table.c.reserved_until > self.adapter.statement_clock())
        return connection.execute(live.limit(1)).first() is not None

    def next_due(self, connection: Connection) -> float | None:
        """Seconds until the next SCHEDULED task is due; None if there is none."""
        return self._promotion.next_due(connection)
