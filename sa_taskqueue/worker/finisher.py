"""Writes how tasks ended: one statement for as many as have ended, as soon as nothing more is about to end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sa_taskqueue import telemetry
from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.runtime import errors
from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement
from sa_taskqueue.worker.ending import Committed, End, Ending

if TYPE_CHECKING:
    from sa_taskqueue.reservation.base import Reservation
    from sa_taskqueue.runtime.lane import Lane
    from sa_taskqueue.store import Pair
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.held import HeldTask, HeldTasks

logger = logging.getLogger("sa_taskqueue.worker")

Return = Callable[[Connection, "Sequence[Pair]"], set[UUID]]

BACKLOG = 4
"""Batches of ends that may wait to be written before nothing more is claimed. Without a limit, no-op handlers on
PostgreSQL ran 83,000 of 150,000 tasks whose ends were not written at the stop (2026-11-30)."""

LINGER = 0.005
"""Seconds an end may wait for others while tasks are waiting to be run: a slow task among fast ones does not hold back
their finishes for longer than this."""


INTERRUPTED_DELAY = 15.0
"""Seconds before a task runs again whose handler raised SystemExit or the like: no attempt is counted, so without a
pause it would run in a hot loop."""


class Ended(NamedTuple):
    """A task that ended, and how long it ran."""

    task: HeldTask
    end: End
    seconds: float


class UnknownNames(NamedTuple):
    """What happens to a task whose name this worker does not know, in seconds."""

    delay: float
    fail_after: float


class Finisher:
    """Collects ends from all slots, writes them on a lane of its own and forgets the tasks."""

    def __init__(
        self,
        lane: Lane,
        reservation: Reservation,
        held: HeldTasks,
        counts: Counts,
        *,
        batch: int,
        unknown: UnknownNames,
        classify: Callable[[BaseException], ErrorKind],
        more_expected: Callable[[], bool],
    ) -> None:
        self._lane = lane
        self._reservation = reservation
        self._held = held
        self._counts = counts
        self._batch = batch
        self._unknown = unknown
        self._classify = classify
        self._more_expected = more_expected
        self._loop = asyncio.get_running_loop()
        self._ended: deque[Ended] = deque()
        self._signalled = False
        self._wake = asyncio.Event()
        self._writing = 0
        self._written = asyncio.Event()
        self._all_written = asyncio.Event()
        self._backoff = Backoff(0.1, 5.0)

    @property
    def pending(self) -> int:
        """Ends that are not written yet."""
        return len(self._ended) + self._writing

    def add(self, task: HeldTask, end: End, seconds: float = 0.0) -> None:
        """Take one end and see that it is written, from any thread."""
        self.collect(task, end, seconds)
        self.notify()

    def collect(self, task: HeldTask, end: End, seconds: float) -> None:
        """Take one end; `notify` must follow. Cheap enough to be called under a lock."""
        self._ended.append(Ended(task, end, seconds))

    def notify(self) -> None:
        """Wake the loop, once for as many ends as come before it looks: each time costs a system call."""
        if not self._signalled:
            self._signalled = True
            self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Write what ends, until cancelled. Errors of the database are waited out; the tasks stay held meanwhile."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._signalled = False
            if len(self._ended) < self._batch and self._more_expected():
                await asyncio.sleep(LINGER)
            while self._ended:
                await self._write(self._take())
                self._written.set()
            self._all_written.set()

    @property
    def behind(self) -> bool:
        """Whether so many ends wait to be written that nothing more is to be claimed."""
        return self.pending > BACKLOG * self._batch

    async def caught_up(self) -> None:
        """Return when few enough ends wait to be written."""
        while self.behind:
            self._written.clear()
            await self._written.wait()

    async def flush(self) -> None:
        """Return when everything that has ended so far is written."""
        while self.pending:
            self._all_written.clear()
            self._wake.set()
            await self._all_written.wait()

    def _take(self) -> list[Ended]:
        """The next batch; from here on a renewal that misses one of its rows has not lost it."""
        batch = [self._ended.popleft() for _ in range(min(self._batch, len(self._ended)))]
        self._writing = len(batch)
        for ended in batch:
            ended.task.finishing = True
        return batch

    async def _write(self, batch: list[Ended]) -> None:
        settle = [ended for ended in batch if isinstance(ended.end, Settlement)]
        if settle:
            await self._settle(settle)
        for ended in batch:
            if isinstance(ended.end, Committed):
                self._count(ended, ended.end.settlement)
        self._counts.released += await self._return(self._release, batch, Ending.RELEASE)
        self._counts.released += await self._return(self._put_off, batch, Ending.INTERRUPTED)
        self._counts.unknown += await self._return(self._give_back, batch, Ending.UNKNOWN)
        self._lost([ended.task for ended in batch if ended.end is Ending.REFUSED])
        self._held.remove_all([ended.task.pair for ended in batch])
        self._reservation.let_go([ended.task.claimed.id for ended in batch])
        self._writing = 0

    async def _settle(self, batch: Sequence[Ended]) -> None:
        """Store the outcomes; a row the database refuses harms only itself."""
        settlements = [ended.end for ended in batch if isinstance(ended.end, Settlement)]
        try:
            changed, certain = await self._repeat_settle(settlements)
        except DBAPIError as error:
            if len(batch) > 1:
                for ended in batch:
                    await self._settle([ended])
            else:
                await self._settle_refused(batch[0], error)
            return
        point("complete.after_commit")
        for ended, settlement in zip(batch, settlements, strict=True):
            if settlement.id in changed or not certain:
                self._count(ended, settlement)
        if certain and len(changed) < len(batch):
            refused = [ended.task for ended in batch if ended.task.claimed.id not in changed]
            # What the renewal has lost, or the watchdog given up, is counted there.
            self._lost([task for task in refused if not task.lost])

    async def _settle_refused(self, ended: Ended, error: DBAPIError) -> None:
        """FAILED with a plain error, because the outcome itself cannot be stored; if not even that, the lease ends."""
        claimed = ended.task.claimed
        logger.warning("the outcome of task %s (%s) cannot be stored: %s", claimed.id, claimed.name, error)
        entry = errors.record("outcome_refused", None, claimed.attempt, message=errors.describe(error.orig))
        plain = Settlement(claimed.id, claimed.epoch, Status.FAILED, error=errors.dump(entry))
        try:
            await self._repeat_settle([plain])
        except DBAPIError as second:
            logger.warning("task %s is left until its lease ends: %s", claimed.id, second)
            return
        self._count(ended, plain)

    async def _repeat_settle(self, settlements: Sequence[Settlement]) -> tuple[set[UUID], bool]:
        """The ids changed, and whether that is certain: after an unanswered COMMIT they may have been before."""
        certain = True
        while True:
            try:
                changed = await self._lane.run(self._settle_in, settlements)
            except CommitUnknown:
                certain = False
            except DBAPIError as error:
                if self._classify(error) is ErrorKind.OTHER:
                    raise
                delay = self._backoff.delay()
                logger.warning(
                    "%d ended tasks wait to be stored (%s); next try in %.1f s", len(settlements), error, delay
                )
                await asyncio.sleep(delay)
            else:
                self._backoff.reset()
                return changed, certain

    async def _return(self, operation: Return, batch: Sequence[Ended], kind: Ending) -> int:
        """Give the tasks that ended so back; the number of them that were still held."""
        pairs = [ended.task.pair for ended in batch if ended.end is kind]
        if not pairs:
            return 0
        try:
            return len(await self._lane.run_repeatable(operation, pairs))
        except DBAPIError as error:
            logger.warning("%d tasks could not be given back; their leases will end: %s", len(pairs), error)
            return 0

    def _settle_in(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        changed = self._reservation.settle(connection, settlements)
        point("complete.before_commit")
        if any(settlement.error is not None for settlement in settlements):
            point("fail.before_commit")
        return changed

    def _release(self, connection: Connection, pairs: Sequence[Pair]) -> set[UUID]:
        changed = self._reservation.release(connection, pairs)
        point("release.before_commit")
        return changed

    def _put_off(self, connection: Connection, pairs: Sequence[Pair]) -> set[UUID]:
        return self._reservation.release(connection, pairs, delay=INTERRUPTED_DELAY)

    def _give_back(self, connection: Connection, pairs: Sequence[Pair]) -> set[UUID]:
        return self._reservation.give_back_unknown(
            connection, pairs, delay=self._unknown.delay, fail_after=self._unknown.fail_after
        )

    def _count(self, ended: Ended, settlement: Settlement) -> None:
        self._counts.settled(settlement.status, count_attempt=settlement.count_attempt)
        if telemetry.listening():
            claimed = ended.task.claimed
            telemetry.emit(
                telemetry.TaskEnded(
                    claimed.id, claimed.name, claimed.queue, settlement.status, claimed.attempt, ended.seconds
                )
            )

    def _lost(self, tasks: Sequence[HeldTask]) -> None:
        if not tasks:
            return
        self._counts.lost += len(tasks)
        for task in tasks:
            claimed = task.claimed
            logger.warning(
                "task %s (%s, epoch %d) is lost: its end is refused", claimed.id, claimed.name, claimed.epoch
            )
        telemetry.emit(telemetry.LeasesLost(tuple(task.claimed.id for task in tasks)))
