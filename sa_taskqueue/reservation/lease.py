"""The default strategy: a claim writes `reserved_until`, and whoever holds the row renews it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue.reservation.mixed_use import warn_of_mixed_use

if TYPE_CHECKING:
    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.store import Claimed, ClaimMemory, Pair, Renewed, Settlement, TaskStore


class Lease:
    """Claims by writing the row: RUNNING until `reserved_until`, epoch and attempt raised.

    Works on every database. No two unexpired leases exist for one task, and a holder whose lease was taken over
    changes nothing, because every write names the epoch it was claimed under.
    """

    name = "lease"
    renewed = True
    claims_in_work = False
    reserves_apart = False

    def bind(self, store: TaskStore, adapter: Adapter, *, lease: float, by: str, max_crashes: int = 3) -> None:  # noqa: ARG002  its claims count crashes anyway
        """Remember the table and what each claim writes."""
        self._store = store
        self._adapter = adapter
        self._lease = lease
        self._by = by
        self._memories: dict[str, ClaimMemory | None] = {}

    def check(self, connection: Connection) -> None:
        """Nothing is needed but the table of tasks; a warning of workers that hold its tasks unseen."""
        warn_of_mixed_use(connection, self._store, self._adapter, self.name)

    def claim(self, connection: Connection, queue: str, limit: int) -> list[Claimed]:
        """One batch, by the claim shape of the database."""
        return self._store.claim(connection, queue, limit, lease=self._lease, by=self._by, memory=self._memory(queue))

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        """Move `reserved_until`; rows locked by somebody else's transaction are not waited for."""
        return self._store.renew(connection, held, lease=lease)

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Write the outcomes, guarded by the epoch; the lease ends with the status."""
        return self._store.settle(connection, settlements)

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float = 0.0) -> set[UUID]:
        """NEW again, or SCHEDULED after `delay` seconds, with the attempt taken off."""
        return self._store.release(connection, held, delay=delay)

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """SCHEDULED again for a worker that knows the name."""
        return self._store.give_back_unknown(connection, held, delay=delay, fail_after=fail_after)

    def let_go(self, ids: Sequence[UUID]) -> None:
        """Nothing: the row says that the lease has ended."""

    def end(self, connection: Connection) -> None:
        """Nothing, likewise."""

    def _memory(self, queue: str) -> ClaimMemory | None:
        """How far this worker has claimed in the queue: it then does not walk over the dead rows in front."""
        if queue not in self._memories:
            self._memories[queue] = self._store.claim_memory()
        return self._memories[queue]
