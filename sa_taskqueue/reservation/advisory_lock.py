"""A strategy that writes nothing to hold a task: a lock of the server's, which ends with the worker's connection."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue.exceptions import InvalidSetting, UnsupportedReservation
from sa_taskqueue.reservation.base import refuse_unsupported
from sa_taskqueue.reservation.crashes import CrashCount, crash_notes
from sa_taskqueue.reservation.mixed_use import mark, warn_of_mixed_use
from sa_taskqueue.runtime.engines import copy_without_pool
from sa_taskqueue.store import Renewed
from sa_taskqueue.store.session_locks import Session, SessionLocks

if TYPE_CHECKING:
    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.store import Claimed, Pair, Settlement, TaskStore

logger = logging.getLogger("sa_taskqueue.reservation")

WINDOW = 100
"""Candidates that are read at a time, at least."""

MAX_WINDOWS = 4
"""Windows of candidates that one claim looks through: with more held by others, the next claim starts further on."""


class Hold(NamedTuple):
    """The lock of one task, and which of the connections in turn has it."""

    key: Any
    turn: int


class AdvisoryLock:
    """Holds each task by a lock of one connection, on PostgreSQL, MySQL 8 and MariaDB 10.6.

    Nothing is written until the task ends. The server frees the locks of a worker that dies at once. A worker that
    loses the connection of its locks is told at the next renewal (a quarter of the lease) and stops its handlers; until
    then another worker may have begun: the first of the two to finish is accepted. ``max_locks`` is how many tasks the
    worker holds at most: locks take room in a table of the server's that all its clients share. A crash leaves no
    trace: with ``count_crashes`` attempts are noted at the claim in the table of `CrashNoteMixin`.
    """

    name = "advisory-lock"
    renewed = True
    claims_in_work = False
    reserves_apart = True

    def __init__(self, *, max_locks: int = 500, count_crashes: bool = False) -> None:
        # PostgreSQL has room for max_locks_per_transaction * max_connections locks: 6,400 with its defaults.
        if not isinstance(max_locks, int) or not 1 <= max_locks <= 10_000:
            raise InvalidSetting(setting="max_locks", value=max_locks, allowed="a whole number from 1 to 10,000")
        self.count_crashes = count_crashes
        self._max_locks = max_locks
        self._guard = threading.Lock()
        self._holds: dict[UUID, Hold] = {}
        self._keys: set[Any] = set()
        self._to_free: list[Any] = []
        self._crowd: dict[str, int] = {}
        self._go_on: dict[str, int] = {}
        self._driver_connection: Any = None
        self._session = Session(0, "")
        self._turn = 0

    def bind(self, store: TaskStore, adapter: Adapter, *, lease: float, by: str, max_crashes: int = 3) -> None:  # noqa: ARG002  a lock has no end
        """Learn table and database; UnsupportedReservation where there are no such locks.

        MissingTable if crashes have no table to be counted in.
        """
        refuse_unsupported(self.name, adapter)
        shape = adapter.session_locks()
        if shape is None:
            raise NotImplementedError(f"{type(adapter).__name__} names the strategy without its statements")
        self._store = store
        self._adapter = adapter
        self._locks = SessionLocks(store.table, shape)
        notes = crash_notes(store, "AdvisoryLock") if self.count_crashes else None
        self._crashes = CrashCount(notes, by, max_crashes=max_crashes)

    def check(self, connection: Connection) -> None:
        """Refuse a transaction pooler.

        Two connections that are open at once never share one of the server's, unless somebody between lends it out.
        """
        session = self._recognise(connection)
        engine = copy_without_pool(connection.engine)
        with engine.connect() as other, other.begin():
            shared = self._locks.session(other).number == session.number
            moved = self._locks.session(connection).number != session.number
        if shared or moved:
            raise self._behind_pooler()
        mark(connection, self._locks)
        warn_of_mixed_use(connection, self._store, self._adapter, self.name)

    def claim(self, connection: Connection, queue: str, limit: int) -> list[Claimed]:
        """Lock up to `limit` due tasks, and read them again under the lock: one may have ended since it was found."""
        session = self._recognise(connection)
        self._crashes.clear(connection)
        self._free(connection)
        with self._guard:
            wanted = min(limit, self._max_locks - len(self._holds))
        locked: list[UUID] = []
        claimed: list[Claimed] = []
        try:
            if wanted > 0:
                self._lock_due(connection, queue, wanted, session, locked)
                claimed = self._crashes.begin(connection, self._store.unmarked.read(connection, locked[:wanted]))
        finally:
            kept = {task.id for task in claimed}
            self.let_go([task for task in locked if task not in kept])
        self._free(connection)
        return claimed

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:  # noqa: ARG002  a lock has no end
        """Which tasks are still locked by the connection of the claims, asked on another one."""
        with self._guard:
            session = self._session
            keys = {hold.key: task for task, _ in held if (hold := self._intact(task)) is not None}
        if not keys:
            return Renewed(set(), set())
        locked = {keys[key] for key in self._locks.taken(connection, list(keys), session)}
        standing = self._store.unmarked.standing(connection, [pair for pair in held if pair[0] in locked])
        return Renewed(standing, set())

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        """Write the outcomes of tasks whose lock is not known to be lost, guarded by the epoch."""
        changed = self._store.unmarked.settle(connection, [one for one in settlements if self._intact(one.id)])
        self._crashes.end(connection, [one.id for one in settlements], changed)
        return changed

    def release(self, connection: Connection, held: Sequence[Pair], *, delay: float = 0.0) -> set[UUID]:
        """Raise the epoch, so that a late end is refused; the lock is freed when the worker has forgotten the task."""
        changed = self._store.unmarked.release(connection, held, delay=delay)
        self._crashes.end(connection, [task for task, _ in held], changed)
        return changed

    def give_back_unknown(
        self, connection: Connection, held: Sequence[Pair], *, delay: float, fail_after: float
    ) -> set[UUID]:
        """SCHEDULED for a worker that knows the name."""
        changed = self._store.unmarked.give_back_unknown(connection, held, delay=delay, fail_after=fail_after)
        self._crashes.end(connection, [task for task, _ in held], changed)
        return changed

    def let_go(self, ids: Sequence[UUID]) -> None:
        """Free the locks at the next claim: only the connection that took one can free it."""
        self._crashes.let_go(ids)
        with self._guard:
            for task in ids:
                hold = self._holds.pop(task, None)
                if hold is not None and hold.turn == self._turn:
                    self._keys.discard(hold.key)
                    self._to_free.append(hold.key)

    def end(self, connection: Connection) -> None:
        """Free what is left; the end of the connection would do it as well."""
        self._recognise(connection)
        self._crashes.clear(connection)
        self._free(connection)

    def _recognise(self, connection: Connection) -> Session:
        """Notice that this is another connection than that of the claim before: then its locks are lost."""
        driver_connection = connection.connection.dbapi_connection
        if driver_connection is self._driver_connection:
            return self._session
        session = self._locks.session(connection)
        with self._guard:
            self._driver_connection = driver_connection
            self._session = session
            self._turn += 1
            self._keys.clear()
            self._to_free.clear()
            if self._holds:
                logger.warning("the connection of %d locks is lost; their handlers are stopped", len(self._holds))
        return session

    def _behind_pooler(self) -> UnsupportedReservation:
        reason = "each statement is given another of its connections, as by a transaction pooler, and locks stay behind"
        supported = ", ".join(sorted(self._adapter.reservations - {self.name}))
        database = f"{self._adapter.name}: {reason}"
        return UnsupportedReservation(reservation=self.name, database=database, supported=supported)

    def _intact(self, task: UUID) -> Hold | None:
        """The lock of the task, unless it is lost for what is known."""
        hold = self._holds.get(task)
        return hold if hold is not None and hold.turn == self._turn else None

    def _lock_due(self, connection: Connection, queue: str, wanted: int, session: Session, locked: list[UUID]) -> None:
        """Add to `locked` until there are as many as wanted, or nothing more is free.

        The first window starts at random among what others were found to hold: else all workers would begin with the
        same rows. A claim that found them all held is followed by one that goes on behind them. After a window that
        began further on and reached the end of the queue, the head is looked at.
        """
        position = start = self._go_on.pop(queue, 0) or self._random_start(queue)
        refused = 0
        size = max(WINDOW, wanted + len(self._holds))
        for _ in range(MAX_WINDOWS):
            ids = self._store.unmarked.candidates(connection, queue, size, offset=position)
            refused += self._lock(connection, ids, wanted, session, locked)
            if len(locked) >= wanted or (len(ids) < size and not start):
                break
            position += size
            if len(ids) < size:
                position = start = 0
        else:
            if not locked:
                self._go_on[queue] = position
        self._crowd[queue] = refused

    def _lock(
        self, connection: Connection, ids: Sequence[UUID], wanted: int, session: Session, locked: list[UUID]
    ) -> int:
        """Lock candidates, as many at a time as are still wanted, twice as many after each that brought none.

        So a few more than wanted may be locked; they are freed at once. Returns how many were refused.
        """
        keys = self._free_keys(ids, session)
        refused, size = 0, wanted - len(locked)
        while keys and len(locked) < wanted:
            chunk = dict(keys[:size])
            del keys[: len(chunk)]
            got = self._take(connection, chunk, session)
            locked += got
            refused += len(chunk) - len(got)
            size = wanted - len(locked) if got else 2 * size
        return refused

    def _random_start(self, queue: str) -> int:
        return random.randint(0, self._crowd.get(queue, 0))  # noqa: S311 - spreading workers needs no secrecy

    def _free_keys(self, ids: Iterable[UUID], session: Session) -> list[tuple[Any, UUID]]:
        """The keys of what this worker does not hold itself: its own second try would succeed."""
        keys = {self._locks.key(task, session): task for task in ids if task not in self._holds}
        return [(key, task) for key, task in keys.items() if key not in self._keys]

    def _take(self, connection: Connection, chunk: dict[Any, UUID], session: Session) -> list[UUID]:
        try:
            taken = self._locks.take(connection, list(chunk))
        except BaseException:
            # The server may have got some before it failed; the connection keeps them.
            with self._guard:
                self._to_free += chunk
            raise
        if taken.sessions != {session.number}:
            raise self._behind_pooler()
        with self._guard:
            self._keys |= taken.keys
            self._holds.update((chunk[key], Hold(key, self._turn)) for key in taken.keys)
        return [task for key, task in chunk.items() if key in taken.keys]

    def _free(self, connection: Connection) -> None:
        with self._guard:
            keys, self._to_free = self._to_free, []
        if keys:
            self._locks.free(connection, keys)
