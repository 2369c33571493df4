"""The slots of one queue under a strategy that claims in the work: each has a connection and claims for itself."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy.exc import SQLAlchemyError

from sa_taskqueue import telemetry
from sa_taskqueue.exceptions import TaskQueueError
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.threads import call_soon
from sa_taskqueue.store import Settlement
from sa_taskqueue.worker.ending import Committed, Ending, Ends
from sa_taskqueue.worker.held import HeldTask, Unit
from sa_taskqueue.worker.locked_round import Round, all_of
from sa_taskqueue.worker.locked_work import LockedTask, LockedWork

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition
    from sa_taskqueue.store import Claimed
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.execute import Executor
    from sa_taskqueue.worker.finisher import Ended, Finisher
    from sa_taskqueue.worker.outcome import Outcomes
    from sa_taskqueue.worker.quota import Quota

logger = logging.getLogger("sa_taskqueue.worker")

CLAIM_FAILURES = (SQLAlchemyError, OSError, TaskQueueError)
"""What a claim can raise for reasons that may pass: nothing is held then, and the queue is looked at again."""


CUT_DELAY = 0.5
"""Seconds from giving a handler up to breaking its connection. What records the timeout waits for the row's lock by
then: when the lock was freed at once, another slot took the task first and the attempt was not counted (2026-11-30)."""


class LockedSlot(Protocol):
    """Runs one task at a time."""

    task: Unit | None
    started: float
    abandoned: bool

    async def look(self) -> bool:
        """Claim a task; whether there was one, which then runs, and others after it."""
        ...

    def give_up(self) -> None:
        """End the hold of a handler that does not end."""
        ...

    def cancel(self) -> None:
        """Have the handler end that runs on the loop, or the wait for it."""
        ...

    def close(self) -> None:
        """End, when nothing runs."""
        ...


@dataclass(frozen=True)
class Service:
    """What all slots of a worker share."""

    executor: Executor
    outcomes: Outcomes
    finisher: Finisher
    counts: Counts
    quota: Quota
    handlers: Mapping[str, TaskDefinition[..., Any]]
    note: Callable[[Claimed], Coroutine[Any, Any, None]] | None
    """Commits that an attempt begins; None where crashes are not counted."""
    stopping: Callable[[], bool]
    """Whether the worker is to end, so that what is claimed but not begun is given back."""


class LockedSlots:
    """At most `concurrency` handlers of one queue at once, each in the transaction of its slot."""

    def __init__(self, name: str, concurrency: int, service: Service, make: Callable[[LockedSlots, int], LockedSlot]):
        self.name = name
        self.service = service
        self.stopping = False
        self.abandoned = 0
        """Threads given up after a timeout whose handlers still run."""
        self.waiting = 0
        """No task waits: what is locked runs."""
        self.loop = asyncio.get_running_loop()
        self.lock = threading.Lock()
        self.failed: asyncio.Future[None] = self.loop.create_future()
        """Has the error of a slot's thread that nobody foresaw."""
        self._make = make
        self._made = 0
        self._slots: set[LockedSlot] = set()
        self._free: deque[LockedSlot] = deque()
        self._given_up: set[LockedSlot] = set()
        self._freed = asyncio.Event()
        for _ in range(concurrency):
            self._add()

    @property
    def at_rest(self) -> bool:
        """Whether nothing runs."""
        return len(self._free) == len(self._slots)

    def stop(self) -> None:
        """Claim no more."""
        self.stopping = True
        self._freed.set()

    def fail(self, error: BaseException) -> None:
        """End the worker with this error. On the loop."""
        if not self.failed.done():
            self.failed.set_exception(error)

    async def free_one(self) -> LockedSlot | None:
        """A slot without a task, the one that worked last; None when it is time to stop."""
        while not self.stopping:
            if self._free:
                return self._free.pop()
            self._freed.clear()
            await self._freed.wait()
        return None

    def park(self, slot: LockedSlot) -> None:
        """The slot has nothing to do. On the loop."""
        if slot in self._slots:
            self._free.append(slot)
            self._freed.set()

    def take_waiting(self) -> list[HeldTask]:
        """No task waits."""
        return []

    def in_threads(self) -> list[tuple[LockedSlot, Unit]]:
        """The sync handlers that run in the thread that holds their transaction."""
        return [(slot, task) for slot, task in self._running() if isinstance(slot, ThreadSlot) and not _is_async(task)]

    def on_loop(self) -> list[Unit]:
        """The tasks whose handlers the loop waits for."""
        return [task for slot, task in self._running() if not isinstance(slot, ThreadSlot) or _is_async(task)]

    def cancel(self, task: Unit) -> None:
        """Have the handler end if it runs on the loop."""
        for slot, running in self._running():
            if running is task:
                slot.cancel()

    def overdue(self, now: float) -> list[tuple[LockedSlot, Unit]]:
        """Sync handlers that run longer than their timeout."""
        return [
            (slot, task)
            for slot, task in self.in_threads()
            if task.definition is not None
            and task.definition.timeout is not None
            and now - slot.started > task.definition.timeout
        ]

    def abandon(self, thread: LockedSlot, task: Unit) -> bool:
        """Give the slot up with its connection, which frees the task. False: the handler has just returned."""
        with self.lock:
            if thread.task is not task or thread.abandoned:
                return False
            thread.abandoned = True
            self.abandoned += 1
        self._slots.discard(thread)
        self._given_up.add(thread)
        if self.stopping:
            self._cut(thread)
        else:
            self.loop.call_later(CUT_DELAY, self._cut, thread)
        self._add()
        return True

    def close(self) -> None:
        """End the slots; nothing runs any more."""
        for slot in self._free:
            slot.close()
        for slot in list(self._given_up):
            self._cut(slot)

    def claimed(self, tasks: Sequence[LockedTask], seconds: float) -> None:
        """A slot is about to run these tasks."""
        for task in tasks:
            task.definition = self.service.handlers.get(task.claimed.name)
        call_soon(self.loop, self._count_claimed, len(tasks), seconds)

    def begin(self, slot: LockedSlot, unit: Unit) -> bool:
        """The slot is about to call a handler. False: it was given up meanwhile."""
        with self.lock:
            slot.task, slot.started = unit, time.monotonic()
            return not slot.abandoned

    def ended(self, slot: LockedSlot, ended: Sequence[Ended]) -> bool:
        """Hand on what is to be counted, or still to be written. False: the slot was given up meanwhile."""
        with self.lock:
            if slot.abandoned:
                self.abandoned -= 1
                return False
            slot.task = None
        for task, end, seconds in ended:
            if isinstance(end, Settlement | Committed) or end in (Ending.RELEASE, Ending.REFUSED):
                self.service.finisher.add(task, end, seconds)
            elif end is not Ending.LOST:
                call_soon(self.loop, self._count_returned, end)
        return True

    def _cut(self, slot: LockedSlot) -> None:
        if slot in self._given_up:
            self._given_up.discard(slot)
            slot.give_up()

    def _running(self) -> list[tuple[LockedSlot, Unit]]:
        with self.lock:
            return [(slot, slot.task) for slot in self._slots if slot.task is not None]

    def _add(self) -> None:
        self._made += 1
        slot = self._make(self, self._made)
        self._slots.add(slot)
        self.park(slot)

    def _count_claimed(self, tasks: int, seconds: float) -> None:
        self.service.counts.claimed += tasks
        if telemetry.listening():
            telemetry.emit(telemetry.TasksClaimed(self.name, tasks, seconds))

    def _count_returned(self, end: Ending) -> None:
        if end is Ending.UNKNOWN:
            self.service.counts.unknown += 1
        else:
            self.service.counts.released += 1


class ThreadSlot:
    """Over an Engine: a thread with its connection, in which sync handlers run. Async ones run on the loop meanwhile.

    The thread is daemonic: a handler that never returns must not keep the process alive.
    """

    def __init__(self, slots: LockedSlots, number: int, work: LockedWork) -> None:
        self.task: Unit | None = None
        self.started = 0.0
        self.abandoned = False
        self._slots = slots
        self._work = work
        self._name = f"sa_taskqueue-{slots.name}-{number}"
        self._wanted = threading.Semaphore(0)
        self._looked: asyncio.Future[bool] | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self._on_loop: asyncio.Task[Ends] | None = None

    async def look(self) -> bool:
        """Have the thread claim a task."""
        looked = self._looked = self._slots.loop.create_future()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve_or_tell, name=self._name, daemon=True)
            self._thread.start()
        self._wanted.release()
        found: bool = await looked
        return found

    def give_up(self) -> None:
        """Break the connection under the handler."""
        self._work.cut()

    def cancel(self) -> None:
        """Cancel the async handler."""
        if self._on_loop is not None:
            self._on_loop.cancel()

    def close(self) -> None:
        """Let the thread end."""
        self._closed = True
        self._wanted.release()

    def _serve_or_tell(self) -> None:
        """An error nobody foresaw ends the worker, as it does in any other part."""
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001  raised again on the loop
            call_soon(self._slots.loop, self._slots.fail, error)

    def _serve(self) -> None:
        while True:
            self._wanted.acquire()
            if self._closed:
                return
            tasks = self._claim()
            self._tell(bool(tasks))
            while tasks:
                if not self._slots.ended(self, self._run_all(tasks)):
                    self._work.rest()
                    return
                tasks = [] if self._slots.stopping else self._claim()
            self._work.rest()
            call_soon(self._slots.loop, self._slots.park, self)

    def _claim(self) -> Sequence[LockedTask]:
        service = self._slots.service
        wanted = service.quota.take(self._work.most)
        if not wanted:
            return ()
        tasks: list[LockedTask] = []
        sent_at = time.monotonic()
        try:
            tasks = self._work.claim(wanted)
            if len(tasks) == 1:
                self._note(tasks)
        except CLAIM_FAILURES as error:
            tasks = []
            not_claimed(self._slots.name, self._work, error)
        finally:
            service.quota.answered(wanted, len(tasks))
        if tasks:
            self._slots.claimed(tasks, time.monotonic() - sent_at)
        return tasks

    def _note(self, tasks: Sequence[HeldTask]) -> None:
        service = self._slots.service
        if service.note is not None:
            for task in tasks:
                asyncio.run_coroutine_threadsafe(service.note(task.claimed), self._slots.loop).result()
            point("claim.noted")

    def _run_all(self, tasks: Sequence[LockedTask]) -> list[Ended]:
        run = Round(self._work, tasks)
        if len(tasks) == 1:
            self._slots.begin(self, run.units[0])
            return run.finish_one(self._run(run.units[0]), self.started)
        for unit in run.units:
            if self._slots.service.stopping() or not self._slots.begin(self, unit):
                break
            try:
                self._note(unit.members)
            except CLAIM_FAILURES as error:
                logger.warning("queue %s: an attempt cannot be noted: %s", self._slots.name, error)
                break
            if not run.add(unit, self._run(unit), self.started):
                break
        return run.finish()

    def _run(self, task: Unit) -> Ends:
        if task.definition is None:
            return Ending.UNKNOWN
        if _is_async(task):
            return self._run_on_loop(task)
        return self._slots.service.executor.run(task)

    def _run_on_loop(self, task: Unit) -> Ends:
        """Run an async handler while this thread keeps the transaction open."""
        ended = threading.Event()
        ends: list[Ends] = []

        def start() -> None:
            self._on_loop = self._slots.loop.create_task(_ending(self._slots.service.executor, task))
            self._on_loop.add_done_callback(keep)

        def keep(done: asyncio.Task[Ends]) -> None:
            self._on_loop = None
            ends.append(all_of(task, Ending.RELEASE) if done.cancelled() else done.result())
            ended.set()

        call_soon(self._slots.loop, start)
        ended.wait()
        return ends[0]

    def _tell(self, found: bool) -> None:
        looked = self._looked

        def tell() -> None:
            if looked is not None and not looked.done():
                looked.set_result(found)

        call_soon(self._slots.loop, tell)


async def _ending(executor: Executor, task: Unit) -> Ends:
    return await executor.run_async(task)


def not_claimed(queue: str, work: LockedWork, error: Exception) -> None:
    """Give the connection back after a claim that failed; the queue is looked at again after a while."""
    logger.warning("queue %s cannot be claimed from: %s", queue, error)
    work.rest()


def _is_async(task: Unit) -> bool:
    return task.definition is not None and task.definition.is_async
