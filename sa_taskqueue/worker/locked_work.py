"""One slot's transaction under a strategy that claims in the work: claim, handler, outcome and COMMIT are one.

Used by one thread, or inside SQLAlchemy's greenlet on the loop. The connection is in a transaction from a claim that
found a task to the end of that task, and at no other time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection, NestedTransaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import CommitUnknown, LeaseLost
from sa_taskqueue.runtime.commit import undo
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.sockets import Breaker
from sa_taskqueue.session.outermost import forget_after_owner, wake_after_owner
from sa_taskqueue.store import Settlement
from sa_taskqueue.worker.ending import Committed, End, Ending
from sa_taskqueue.worker.finisher import INTERRUPTED_DELAY, Ended, UnknownNames
from sa_taskqueue.worker.held import HeldTask, HeldTasks
from sa_taskqueue.worker.session_scope import WorkConnections, WorkUnit

if TYPE_CHECKING:
    from sa_taskqueue.reservation import InWork
    from sa_taskqueue.store import Claimed

logger = logging.getLogger("sa_taskqueue.worker")


class LockedTask(HeldTask):
    """A task held by the transaction of one slot, for as long as that stands."""

    __slots__ = ("work",)

    def __init__(self, claimed: Claimed, work: LockedWork) -> None:
        super().__init__(claimed, math.inf, math.inf)
        self.work = work


class LockedWork:
    """The connection of one slot, taken for a claim and given back with `rest`."""

    def __init__(
        self, connections: WorkConnections, reservation: InWork, held: HeldTasks, queue: str, unknown: UnknownNames
    ) -> None:
        self.connections = connections
        self._reservation = reservation
        self._held = held
        self._queue = queue
        self._unknown = unknown
        self._connection: Connection | None = None
        self._breaker: Breaker | None = None
        self.together = False
        """Whether the transaction holds other tasks, so that the end of one handler is not yet that of all."""
        self._singly = 0

    @property
    def connection(self) -> Connection:
        """The connection, in the transaction that holds the task."""
        if self._connection is None:
            raise LookupError("no task is held")
        return self._connection

    @property
    def most(self) -> int:
        """How many tasks the next claim may take. After a transaction of several was lost, its tasks go one by one."""
        return 1 if self._singly else self._reservation.batch

    def claim(self, limit: int) -> list[LockedTask]:
        """Lock the next due tasks and stay in the transaction. None: there were none, and no transaction is open."""
        self._singly = max(0, self._singly - 1)
        connection = self._taken()
        point("claim.before_send")
        try:
            connection.begin()
            self.connections.adapter.begin(connection)
            claims = self._reservation.claim(connection, self._queue, limit)
            if not claims:
                connection.commit()
                return []
        except BaseException:
            undo(connection)
            raise
        point("claim.locked")
        self.together = len(claims) > 1
        return [LockedTask(claimed, self) for claimed in claims]

    def unit(self, tasks: Sequence[HeldTask]) -> LockedUnit:
        """The handler's part of the transaction."""
        return LockedUnit(self, self.connections, self._reservation, self._held, tasks)

    def finish(self, task: HeldTask, end: End) -> End:
        """Commit the outcome, or roll back; what then remains to be written, or only counted, elsewhere."""
        if isinstance(end, Committed):
            return end
        connection = self.connection
        if task.lost or end in (Ending.LOST, Ending.RELEASE, Ending.REFUSED) or not connection.in_transaction():
            undo(connection)
            return Ending.LOST if task.lost else end
        try:
            return self._finish(connection, task.claimed, end)
        except CommitUnknown:
            logger.warning("task %s: no answer to the COMMIT of its outcome; its row will tell", task.claimed.id)
        except SQLAlchemyError as error:
            broken = connection.invalidated or self.lost_connection(error)
            undo(connection)
            if broken:
                logger.warning("task %s is free again, as its transaction was cut: %s", task.claimed.id, error)
            elif isinstance(end, Settlement):
                return end
        return Ending.LOST

    @property
    def stands(self) -> bool:
        """Whether the transaction that holds the tasks is still open."""
        connection = self.connection
        return connection.in_transaction() and not connection.invalidated

    def finish_all(self, ended: Sequence[Ended]) -> list[Ended]:
        """Commit the outcomes of all tasks of the transaction, or roll it back: then all of them are free again."""
        connection = self.connection
        if not self.stands:
            self._singly = len(ended)
            return list(ended)
        try:
            if any(one.task.lost for one in ended):
                return self._undone(ended, set())
            refused = self._write(connection, ended)
            if refused:
                return self._undone(ended, refused)
            point("complete.before_commit")
            self.commit()
        except CommitUnknown:
            logger.warning("%d tasks: no answer to the COMMIT of their outcomes; their rows will tell", len(ended))
            return [one._replace(end=Ending.LOST) for one in ended]
        except SQLAlchemyError as error:
            logger.warning("%d tasks are free again, as their transaction failed: %s", len(ended), error)
            return self._undone(ended, set())
        point("complete.after_commit")
        wake_after_owner(connection)
        return [one._replace(end=Committed(one.end)) if isinstance(one.end, Settlement) else one for one in ended]

    def _undone(self, ended: Sequence[Ended], refused: set[UUID]) -> list[Ended]:
        self._singly = len(ended)
        undo(self.connection)
        forget_after_owner(self.connection)
        ends = (
            Ending.LOST if one.task.lost else Ending.REFUSED if one.task.claimed.id in refused else Ending.RELEASE
            for one in ended
        )
        return [one._replace(end=end) for one, end in zip(ended, ends, strict=True)]

    def _write(self, connection: Connection, ended: Sequence[Ended]) -> set[UUID]:
        """Write how the tasks ended; those which were not held any more."""
        settlements = [one.end for one in ended if isinstance(one.end, Settlement)]
        changed = self._reservation.settle(connection, settlements) if settlements else set()
        unknown = [one.task.pair for one in ended if one.end is Ending.UNKNOWN]
        if unknown:
            names = self._unknown
            self._reservation.give_back_unknown(connection, unknown, delay=names.delay, fail_after=names.fail_after)
        interrupted = [one.task.pair for one in ended if one.end is Ending.INTERRUPTED]
        if interrupted:
            self._reservation.release(connection, interrupted, delay=INTERRUPTED_DELAY)
        return {one.id for one in settlements} - changed

    def commit(self) -> None:
        """Commit. CommitUnknown: nobody answered."""
        try:
            self.connection.commit()
        except DBAPIError as error:
            undo(self.connection)
            if self.lost_connection(error):
                raise CommitUnknown from error
            raise

    def lost_connection(self, error: BaseException) -> bool:
        """Whether the error is that of a broken connection, which has ended the transaction and the hold."""
        return self.connections.adapter.classify(error) is ErrorKind.DISCONNECT

    def cut(self) -> None:
        """Break the connection under a handler that does not end, which frees its task; from any thread."""
        if self._breaker is not None:
            self._breaker.cut()

    def rest(self) -> None:
        """Give the connection back: the slot has nothing to do."""
        connection, self._connection = self._connection, None
        if self._breaker is not None:
            self._breaker.close()
            self._breaker = None
        if connection is not None:
            if connection.in_transaction():
                undo(connection)
            self.connections.give(connection)
            self.connections.turns.release()

    def _taken(self) -> Connection:
        if self._connection is not None and self._connection.invalidated:
            self.rest()
        if self._connection is None:
            self.connections.turns.acquire()
            try:
                self._connection = self.connections.take()
            except BaseException:
                self.connections.turns.release()
                raise
            self._breaker = Breaker(self._connection)
        return self._connection

    def _finish(self, connection: Connection, claimed: Claimed, end: End) -> End:
        pair = (claimed.id, claimed.epoch)
        if isinstance(end, Settlement):
            if not self._reservation.settle(connection, [end]):
                undo(connection)
                return Ending.REFUSED
            point("complete.before_commit")
            if end.error is not None:
                point("fail.before_commit")
            end = Committed(end)
        elif end is Ending.UNKNOWN:
            unknown = self._unknown
            self._reservation.give_back_unknown(connection, [pair], delay=unknown.delay, fail_after=unknown.fail_after)
        else:
            self._reservation.release(connection, [pair], delay=INTERRUPTED_DELAY)
        self.commit()
        point("complete.after_commit")
        return end


class LockedUnit(WorkUnit):
    """The handler's session inside the transaction that holds its task: a savepoint, so that a failure is undone and
    still recorded by the same COMMIT.
    """

    def __init__(
        self,
        work: LockedWork,
        connections: WorkConnections,
        reservation: InWork,
        held: HeldTasks,
        tasks: Sequence[HeldTask],
    ) -> None:
        super().__init__(connections, reservation, held, tasks)
        self._work = work
        self._savepoint: NestedTransaction | None = None

    def connection(self) -> Connection:
        """The connection, behind the savepoint that is made at the first call."""
        if self._connection is None:
            connection = self._work.connection
            self._savepoint = connection.begin_nested()
            self._connection = connection
        return self._connection

    def complete(self, settlements: Sequence[Settlement]) -> Sequence[End]:
        """As of any unit; the handler's own error leaves the transaction open, to record it.

        Where the transaction holds other tasks too, work and outcomes stay in it, to be committed with theirs.
        """
        connection = self.connection()
        try:
            self._flush()
            if self._savepoint is not None:
                self._savepoint.commit()
        except BaseException:
            self.undo()
            raise
        if self._work.together and not self._lost:
            return settlements
        try:
            if self._lost or not self._reservation.settle(connection, settlements):
                raise LeaseLost(id=settlements[0].id, epoch=settlements[0].epoch)
            point("complete.before_commit")
            self._work.commit()
        except BaseException:
            undo(connection)
            forget_after_owner(connection)
            raise
        point("complete.after_commit")
        wake_after_owner(connection)
        return [Committed(one) for one in settlements]

    def undo(self) -> None:
        """Roll back to the savepoint; where the server has ended the transaction, all of it."""
        connection, savepoint = self._connection, self._savepoint
        if connection is None or savepoint is None:
            return
        self._connection = self._savepoint = None
        try:
            if self._session is not None:
                self._session.close()
            if savepoint.is_active:
                savepoint.rollback()
        except SQLAlchemyError as error:
            logger.info("task %s: its transaction has ended, not only its work: %s", self._tasks[0].claimed.id, error)
            undo(connection)
        if not self._work.together:
            forget_after_owner(connection)

    def ended_by(self, error: BaseException) -> bool:
        """A broken connection has freed the row: the task is still to do, as if it had not begun."""
        return self._work.lost_connection(error) and self._work.connection.invalidated
