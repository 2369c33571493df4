"""The slots of one queue: at most `concurrency` handlers at once, sync ones in threads, async ones as asyncio tasks.

Claimed tasks wait in one line, in the order of the claim. A slot takes the next from the line when its handler
returns, so a thread is woken once for its whole share of a batch, and a task behind a slow one goes to another slot.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, cast

from sa_taskqueue.worker.batches import Forming
from sa_taskqueue.worker.ending import End, Ends
from sa_taskqueue.worker.held import HeldBatch, HeldTask, Unit

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition

RunSync = Callable[[Unit], Ends]
RunAsync = Callable[[Unit], Awaitable[Ends]]


class TakesEnds(Protocol):
    """The part of the finisher that slots use."""

    def collect(self, task: HeldTask, end: End, seconds: float) -> None:
        """Take one end; `notify` must follow."""
        ...

    def notify(self) -> None:
        """See that what was collected is written."""
        ...


class SlotThread:
    """A thread that runs sync handlers. Daemonic: one that never returns must not keep the process alive."""

    def __init__(self, slots: Slots, number: int) -> None:
        self.inbox: SimpleQueue[Unit | None] = SimpleQueue()
        self.task: Unit | None = None
        self.started = 0.0
        self.abandoned = False
        self._slots = slots
        name = f"sa_taskqueue-{slots.name}-{number}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (task := self.inbox.get()) is not None:
            next_task: Unit | None = task
            while next_task is not None:
                next_task = self._slots.run_in(self, next_task)
            if self.abandoned:
                return


class Slots:
    """Hands the waiting tasks of one queue to free slots and their ends to the finisher.

    `put`, `pump`, `overdue` and `abandon` belong to the loop's thread. `wake` is called, in whatever thread, when the
    line has become short or everything has come to rest.
    """

    def __init__(
        self,
        name: str,
        concurrency: int,
        run_sync: RunSync,
        run_async: RunAsync,
        finisher: TakesEnds,
        wake: Callable[[], None],
    ) -> None:
        self.name = name
        self.concurrency = concurrency
        self.abandoned = 0
        """Threads given up after a timeout whose handlers still run."""
        self.low_water = 0
        """`wake` is called when no more than this many tasks wait."""
        self.patient = True
        """Whether a batch that is not full waits for more, as long as its handler says."""
        self._run_sync = run_sync
        self._run_async = run_async
        self._finisher = finisher
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._line: deque[Unit] = deque()
        self._forming = Forming(self._line)
        self._free = concurrency
        self._parked: list[SlotThread] = []
        self._threads: set[SlotThread] = set()
        self._made = 0
        self._running: dict[Unit, asyncio.Task[None]] = {}
        self._measured = (0, 0.0)

    @property
    def free(self) -> int:
        """Slots without a task."""
        return self._free

    @property
    def waiting(self) -> int:
        """Claimed tasks without a slot."""
        return len(self._line) + self._forming.more

    @property
    def at_rest(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._free == self.concurrency and not self._line and not self._forming.more

    def put(self, tasks: Sequence[HeldTask]) -> None:
        """Let the tasks wait for a slot, and start as many as are free."""
        with self._lock:
            self._line.extend(tasks)
        self.pump()

    def put_together(self, definition: TaskDefinition[..., Any], tasks: Sequence[HeldTask]) -> None:
        """Let the tasks of a range handler wait for a slot, in a batch with others of their name."""
        with self._lock:
            waiting = self._forming.add(definition, tasks, patient=self.patient)
        for batch in waiting:
            self._loop.call_later(definition.max_wait, self._waited, batch)
        self.pump()

    def hurry(self) -> None:
        """Start what waits to be a full batch: nothing more is to come."""
        self.patient = False
        with self._lock:
            self._forming.release_all()
        self.pump()

    def _waited(self, batch: HeldBatch) -> None:
        with self._lock:
            self._forming.release(batch)
        self.pump()

    def pump(self) -> None:
        """Give the head of the line to each free slot."""
        while True:
            with self._lock:
                if not self._free or not self._line:
                    return
                task = self._next()
                self._free -= 1
                thread = None if _is_async(task) else self._take_thread(task)
            if thread is None:
                self._running[task] = self._loop.create_task(self._run_on_loop(task))
            else:
                thread.inbox.put(task)

    def take_waiting(self) -> list[HeldTask]:
        """Empty the line: the tasks that were never started."""
        with self._lock:
            self._forming.release_all()
            tasks = [task for unit in self._line for task in unit.members]
            self._line.clear()
            self._forming.clear()
        return tasks

    def in_threads(self) -> list[tuple[SlotThread, Unit]]:
        """The tasks that run in threads now, without those of abandoned ones."""
        with self._lock:
            return [(thread, thread.task) for thread in self._threads if thread.task is not None]

    def on_loop(self) -> list[Unit]:
        """The tasks that run as asyncio tasks now."""
        return list(self._running)

    def measured(self) -> tuple[int, float]:
        """How many tasks ended since the last call, and the seconds they took together."""
        with self._lock:
            measured, self._measured = self._measured, (0, 0.0)
        return measured

    def cancel(self, task: Unit) -> None:
        """Cancel the handler if it is an async one; from any thread."""
        self._loop.call_soon_threadsafe(self._cancel, task)

    def overdue(self, now: float) -> list[tuple[SlotThread, Unit]]:
        """Sync handlers that run longer than their timeout."""
        return [
            (thread, task)
            for thread, task in self.in_threads()
            if task.definition is not None
            and task.definition.timeout is not None
            and now - thread.started > task.definition.timeout
        ]

    def abandon(self, thread: SlotThread, task: Unit) -> bool:
        """Give the thread up and free its slot. False: the handler has just returned."""
        with self._lock:
            if thread.task is not task or thread.abandoned:
                return False
            thread.abandoned = True
            self._threads.discard(thread)
            self.abandoned += 1
            self._free += 1
        self.pump()
        self._wake()
        return True

    def close(self) -> None:
        """Let the idle threads end."""
        with self._lock:
            parked, self._parked = self._parked, []
        for thread in parked:
            thread.inbox.put(None)

    def run_in(self, thread: SlotThread, task: Unit) -> Unit | None:
        """Run one task in its thread; the task to run next, or None when the thread is to wait or to end."""
        end = self._run_sync(task)
        now = time.monotonic()
        with self._lock:
            if thread.abandoned:
                self.abandoned -= 1
                return None
            seconds = now - thread.started
            # Collected before the slot is free: at rest, nothing has yet to be collected.
            self._collect(task, end, seconds)
            next_task = self._next_for(thread, now)
            waiting = len(self._line) + self._forming.more
        # System calls outside the lock: they give up the GIL, and all other slots would wait.
        self._finisher.notify()
        if next_task is None and self._line:
            self._loop.call_soon_threadsafe(self.pump)
        elif next_task is None or waiting == self.low_water or type(next_task) is HeldBatch:
            self._wake()
        return next_task

    def _next_for(self, thread: SlotThread, now: float) -> Unit | None:
        """Under the lock: the head of the line if this thread can run it, else the thread is parked."""
        if self._line and not _is_async(self._line[0]):
            task = self._next()
            thread.task, thread.started = task, now
            return task
        thread.task = None
        self._parked.append(thread)
        self._free += 1
        return None

    def _next(self) -> Unit:
        task = self._line.popleft()
        if type(task) is HeldBatch:
            self._forming.started(task)
        return task

    def _collect(self, task: Unit, ends: Ends, seconds: float) -> None:
        """Under the lock: take the end, or those of a batch, whose tasks share its time."""
        if isinstance(task, HeldTask):
            self._measured = (self._measured[0] + 1, self._measured[1] + seconds)
            self._finisher.collect(task, cast("End", ends), seconds)
            return
        members = task.members
        self._measured = (self._measured[0] + len(members), self._measured[1] + seconds)
        for one, end in zip(members, cast("list[End]", ends), strict=True):
            self._finisher.collect(one, end, seconds / len(members))

    def _take_thread(self, task: Unit) -> SlotThread:
        if self._parked:
            thread = self._parked.pop()
        else:
            self._made += 1
            thread = SlotThread(self, self._made)
            self._threads.add(thread)
        thread.task, thread.started = task, time.monotonic()
        return thread

    async def _run_on_loop(self, task: Unit) -> None:
        started = time.monotonic()
        end = await self._run_async(task)
        seconds = time.monotonic() - started
        del self._running[task]
        with self._lock:
            self._collect(task, end, seconds)
            self._free += 1
        self._finisher.notify()
        self.pump()
        if self.waiting <= self.low_water:
            self._wake()

    def _cancel(self, task: Unit) -> None:
        running = self._running.get(task)
        if running is None:
            running = next((running for unit, running in self._running.items() if task in unit.members), None)
        if running is not None:
            # Behind its first step: an asyncio task that is cancelled before it runs nothing at all and keeps its slot.
            self._loop.call_soon(running.cancel)


def _is_async(task: Unit) -> bool:
    return task.definition is not None and task.definition.is_async
