"""What a worker needs from a reservation strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue.exceptions import UnsupportedReservation

if TYPE_CHECKING:
    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.store import Claimed, Pair, Renewed, Settlement, TaskStore


class Reservation(Protocol):
    """A strategy by which tasks are taken, held and finished.

    One object serves one worker. The worker calls `bind` once, before anything else. All other methods take a
    Connection that is already in a transaction, run in whatever thread owns that connection, and never commit: the
    worker commits when they return. A method that takes pairs changes only rows still held under that epoch, and
    returns the ids it did change.
    """

    name: str
    """The word of `--reservation`."""

    renewed: bool
    """Whether what is held ends by itself, so that the worker must renew it."""

    claims_in_work: bool
    """Whether the claim's transaction is also that of the work and the finish, so that each slot claims for itself."""

    reserves_apart: bool
    """Whether claim and renewal leave the table of tasks unwritten and run in AUTOCOMMIT, each statement for itself."""

    def bind(self, store: TaskStore, adapter: Adapter, *, lease: float, by: str, max_crashes: int = 3) -> None:
        """Learn table, database and the worker's name; a ConfigurationError where the database cannot carry it."""
        ...

    def check(self, connection: Connection) -> None:
        """Before the first claim, on its connection: a ConfigurationError if this server cannot carry the strategy."""
        ...

    def claim(self, connection: Connection, queue: str, limit: int) -> list[Claimed]:
        """Take up to `limit` due tasks of one queue, in the order of priority."""
        ...

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        """Hold the tasks for `lease` more seconds from now: which were extended, which are held as long as before."""
        ...

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Finish the tasks and end the hold, all in this transaction; the ids that were still held."""
        ...

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float = 0.0) -> set[UUID]:
        """Give the tasks back without counting the attempt, due after `delay` seconds."""
        ...

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """As `release`, for unknown names; FAILED with code `unknown_task` once the first time is so long ago."""
        ...

    def let_go(self, ids: Sequence[UUID]) -> None:
        """The worker has forgotten these tasks: their ends are committed, or they were lost. In any thread."""
        ...

    def end(self, connection: Connection) -> None:
        """The last call, on the connection of the claims: free at once what would else be freed by time."""
        ...


class InWork(Reservation, Protocol):
    """A strategy with `claims_in_work`: the end of the claim's transaction, however it comes, ends the hold."""

    count_crashes: bool
    """Whether `note` must be committed by another connection before the work begins."""

    batch: int
    """How many tasks one transaction takes at most."""

    def note(self, connection: Connection, claimed: Claimed) -> None:
        """Note that the attempt begins; whoever finds the note on a free task counts a crash."""
        ...


def refuse_unsupported(name: str, adapter: Adapter) -> None:
    """UnsupportedReservation if the database cannot carry the strategy of this name."""
    if name not in adapter.reservations:
        version = ".".join(map(str, adapter.version or ()))
        supported = ", ".join(sorted(adapter.reservations))
        raise UnsupportedReservation(
            reservation=name, database=f"{adapter.name} {version}".strip(), supported=supported
        )
