"""The handler's session: the worker owns one Connection and its one transaction, the session joins it by savepoints.

So commit, rollback and begin in the handler move savepoints only. The guarded completion is the last statement before
the only COMMIT; a lost lease rolls the handler's work back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import CommitUnknown, IsolationRefused, LeaseLost
from sa_taskqueue.runtime.commit import undo
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.links import drop, opened
from sa_taskqueue.session.outermost import forget_after_owner, wake_after_owner
from sa_taskqueue.session.queues import INFO
from sa_taskqueue.session.sessions import TaskSession
from sa_taskqueue.worker.ending import Committed, End

if TYPE_CHECKING:
    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.reservation.base import Reservation
    from sa_taskqueue.store import Settlement
    from sa_taskqueue.worker.held import HeldTask, HeldTasks

logger = logging.getLogger("sa_taskqueue.worker")

TRUSTED = 1.0
"""Seconds for which an idle connection is used again without asking the server, which costs two round trips: under load
none is idle for so long."""


class WorkSession(TaskSession):
    """A handler's session. Its connection is taken at the first statement, so that opening it costs nothing."""

    def __init__(self, *, unit: WorkUnit, **options: Any) -> None:
        super().__init__(join_transaction_mode="create_savepoint", **options)
        self._unit = unit

    def get_bind(self, *_args: Any, **_options: Any) -> Connection:
        """The unit's connection, whatever the mapper: the work and its completion are one transaction."""
        return self._unit.connection()

    def connection(self, bind_arguments: Any = None, execution_options: Any = None) -> Connection:
        """As of any Session, but always at the unit's own isolation level: its transaction has begun."""
        level = (execution_options or {}).get("isolation_level")
        if level is not None:
            raise IsolationRefused(level=level)
        return super().connection(bind_arguments, execution_options)


class Turns(Protocol):
    """How many handlers may have a transaction at once; the others wait their turn."""

    def acquire(self) -> object:
        """Wait for a turn."""
        ...

    def release(self) -> None:
        """Pass the turn on."""
        ...


class LoopTurns:
    """Turns of async handlers: waiting for one must not block the loop on which the others run."""

    def __init__(self, at_once: int) -> None:
        import asyncio

        self._turns = asyncio.Semaphore(at_once)

    def acquire(self) -> object:
        """Wait for a turn; called inside SQLAlchemy's greenlet."""
        from sqlalchemy.util import await_only

        return await_only(self._turns.acquire())

    def release(self) -> None:
        """Pass the turn on."""
        self._turns.release()


class WorkConnections:
    """Connections for handlers' transactions, kept between tasks: to set READ COMMITTED costs 0.9 to 2.3 ms per
    checkout on MySQL. The timeouts of the worker's own connections are not set here: a handler may wait.

    No more than `at_most` are taken: who waits in the pool instead of here is not told of a kept one that is idle, and
    fails in the end. Where a write transaction excludes all others there is one.
    """

    def __init__(self, engine: Engine, adapter: Adapter, *, is_async: bool, at_most: int) -> None:
        self.adapter = adapter
        self.is_async = is_async
        at_once = 1 if adapter.single_writer else max(1, at_most)
        self.turns: Turns = LoopTurns(at_once) if is_async else threading.Semaphore(at_once)
        self._engine = engine
        self._idle: deque[tuple[Connection, float]] = deque()

    def take(self) -> Connection:
        """An idle connection that still works, or a new one."""
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return opened(self._engine, self._prepare)
            if time.monotonic() - since < TRUSTED or self._answers(connection):
                return connection
            drop(connection)

    def give(self, connection: Connection) -> None:
        """Keep the connection for the next handler, unless it is broken."""
        if connection.closed or connection.invalidated:
            drop(connection)
        else:
            self._idle.append((connection, time.monotonic()))

    async def close(self) -> None:
        """Close the idle connections."""
        if self.is_async and self._idle:
            from sqlalchemy.util import greenlet_spawn

            await greenlet_spawn(self._drop_idle)
        else:
            self._drop_idle()

    def _drop_idle(self) -> None:
        while self._idle:
            drop(self._idle.pop()[0])

    def _answers(self, connection: Connection) -> bool:
        """Whether the server is still there: found out by the handler's first statement, it would cost an attempt."""
        if self.adapter.single_writer:
            return True  # a file does not go away, and to ask would take the write lock
        try:
            connection.scalar(select(1))
            connection.rollback()
        except (DBAPIError, OSError) as error:
            logger.info("an idle connection of the handlers is gone (%s); another is opened", error)
            return False
        return True

    def _prepare(self, connection: Connection) -> None:
        isolation = self.adapter.worker_isolation
        if isolation is not None:
            # Under REPEATABLE READ the guard would fail with 40001 after one renewal (PostgreSQL).
            connection.execution_options(isolation_level=isolation)


class WorkUnit:
    """One handler's transaction. Used by one thread, or inside SQLAlchemy's greenlet on the loop."""

    def __init__(
        self, connections: WorkConnections, reservation: Reservation, held: HeldTasks, tasks: Sequence[HeldTask]
    ) -> None:
        self._connections = connections
        self._reservation = reservation
        self._held = held
        self._tasks = tasks
        self.refused: set[UUID] = set()
        """The tasks that the guarded write did not find held any more."""
        self._connection: Connection | None = None
        self._session: WorkSession | None = None

    @property
    def used(self) -> bool:
        """Whether the handler's session has sent a statement, or still has one to send."""
        if self._connection is not None:
            return True
        session = self._session
        return session is not None and bool(session.new or session.dirty or session.deleted)

    def session(self) -> WorkSession:
        """The session for a sync handler."""
        if self._session is None:
            self._session = WorkSession(unit=self, info=self._info())
        return self._session

    def async_session(self) -> Any:
        """The AsyncSession for an async handler; the same WorkSession is inside it."""
        from sa_taskqueue.session.async_sessions import AsyncTaskSession

        session = AsyncTaskSession(sync_session_class=WorkSession, unit=self, info=self._info())
        self._session = session.sync_session  # type: ignore[assignment]
        return session

    def _info(self) -> dict[str, Any]:
        definition = self._tasks[0].definition
        return {} if definition is None else {INFO: definition.task_queue}

    def connection(self) -> Connection:
        """The connection, in its transaction; taken at the first call."""
        if self._connection is None:
            turns = self._connections.turns
            turns.acquire()
            try:
                self._connection = self._begun()
            except BaseException:
                turns.release()
                raise
            if self._connections.adapter.single_writer:
                self._held.owns_write_lock = True
        return self._connection

    def complete(self, settlements: Sequence[Settlement]) -> Sequence[End]:
        """Commit the handler's work together with these outcomes; how the tasks have ended so.

        LeaseLost: one of the tasks is no longer ours, all is rolled back. CommitUnknown: nobody answered the COMMIT.
        Any other exception is the handler's own (its last flush failed); all is rolled back.
        """
        connection = self.connection()
        try:
            self._flush()
            if self._lost or not self._settled(connection, settlements):
                raise LeaseLost(id=settlements[0].id, epoch=settlements[0].epoch)
            point("complete.before_commit")
            self._commit(connection)
        except BaseException as error:
            for task in self._tasks:
                # After an unanswered COMMIT the row may be finished: a renewal that misses it has not lost it.
                task.finishing = isinstance(error, CommitUnknown)
            self.undo()
            raise
        point("complete.after_commit")
        wake_after_owner(connection)
        self._end(connection)
        return [Committed(one) for one in settlements]

    @property
    def _lost(self) -> bool:
        return any(task.lost for task in self._tasks)

    def ends_savepoint(self, error: BaseException) -> bool:
        """Whether this error may have ended more than the savepoint it came out of, whatever it is wrapped in."""
        seen: BaseException | None = error
        while seen is not None:
            if isinstance(seen, DBAPIError) and self._connections.adapter.classify(seen) in _ENDS_TRANSACTION:
                return True
            seen = seen.__cause__ or seen.__context__
        return False

    def ended_by(self, error: BaseException) -> bool:  # noqa: ARG002  a lease outlives the connection
        """Whether this error ended the hold on the task, so that it is no failure of the handler."""
        return False

    def undo(self) -> None:
        """Roll back whatever the handler did."""
        connection = self._connection
        if connection is None:
            return
        try:
            if self._session is not None:
                self._session.close()
        except SQLAlchemyError as error:
            logger.info("the session of task %s could not be closed: %s", self._tasks[0].claimed.id, error)
        undo(connection)
        forget_after_owner(connection)
        self._end(connection)

    def _begun(self) -> Connection:
        connection = self._connections.take()
        try:
            connection.begin()
            self._connections.adapter.begin(connection)
        except BaseException:
            undo(connection)
            self._connections.give(connection)
            raise
        return connection

    def _settled(self, connection: Connection, settlements: Sequence[Settlement]) -> bool:
        """Whether the outcomes are written, for tasks of which nobody has declared one lost meanwhile."""
        changed = self._reservation.settle(connection, settlements)
        if len(changed) < len(settlements):
            self.refused = {one.id for one in settlements} - changed
            return False
        return self._held.finish(self._tasks)

    def _flush(self) -> None:
        if self._session is not None:
            self._session.commit()
            self._session.close()

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except DBAPIError as error:
            if self._connections.adapter.classify(error) is ErrorKind.DISCONNECT:
                raise CommitUnknown from error
            raise

    def _end(self, connection: Connection) -> None:
        self._connection = None
        self._connections.give(connection)
        if self._connections.adapter.single_writer:
            self._held.owns_write_lock = False
        self._connections.turns.release()


_ENDS_TRANSACTION = frozenset(kind for kind in ErrorKind if kind.retryable) | {
    ErrorKind.DISCONNECT,
    ErrorKind.DISK_FULL,
}

MakeUnit = Callable[["Sequence[HeldTask]"], WorkUnit]
