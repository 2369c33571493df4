"""A slot over an AsyncEngine: its transaction is on the loop, sync handlers run in a thread beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.threads import OneThread, call_soon
from sa_taskqueue.worker.ending import End, Ending
from sa_taskqueue.worker.locked_slots import CLAIM_FAILURES, LockedSlots, not_claimed
from sa_taskqueue.worker.outcome import HandlerTimeout

if TYPE_CHECKING:
    from sa_taskqueue.worker.execute import Executor
    from sa_taskqueue.worker.held import HeldTask
    from sa_taskqueue.worker.locked_work import LockedTask, LockedWork

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


class LoopSlot:
    """One task at a time, as asyncio tasks of the worker's loop."""

    def __init__(self, slots: LockedSlots, number: int, work: LockedWork) -> None:
        self.task: LockedTask | None = None
        self.started = 0.0
        self.abandoned = False
        self._slots = slots
        self._work = work
        self._thread_name = f"sa_taskqueue-{slots.name}-{number}"
        self._thread: OneThread | None = None
        self._serving: asyncio.Task[None] | None = None
        self._handler: asyncio.Future[End] | None = None

    async def look(self) -> bool:
        """Claim a task, and run it and others in a task of its own."""
        task = await self._claim()
        if task is None:
            await self._park()
            return False
        self._serving = self._slots.loop.create_task(self._serve(task))
        return True

    def give_up(self) -> None:
        """Nothing: the loop never waits for a handler without being able to end the wait."""

    def cancel(self) -> None:
        """Cancel the async handler, or the wait for a sync one."""
        if self._handler is not None:
            self._handler.cancel()

    def close(self) -> None:
        """Let the thread end."""
        if self._thread is not None:
            self._thread.stop()

    async def _serve(self, task: LockedTask) -> None:
        claimed: LockedTask | None = task
        while claimed is not None:
            end, late = await self._run(claimed)
            end = await _in_greenlet(self._work.finish, claimed, end)
            if late:
                self._give_up_thread(claimed)
            self._slots.ended(self, claimed, end)
            claimed = None if self._slots.stopping else await self._claim()
        await self._park()

    async def _park(self) -> None:
        await _in_greenlet(self._work.rest)
        self._slots.park(self)

    async def _claim(self) -> LockedTask | None:
        service = self._slots.service
        if not service.quota.take():
            return None
        task, sent_at = None, time.monotonic()
        try:
            task = await _in_greenlet(self._work.claim)
            if task is not None and service.note is not None:
                await service.note(task.claimed)
                point("claim.noted")
        except CLAIM_FAILURES as error:
            task = None
            await _in_greenlet(not_claimed, self._slots.name, self._work, error)
        finally:
            service.quota.answered(found=task is not None)
        if task is not None:
            self._slots.claimed(self, task, time.monotonic() - sent_at)
        return task

    async def _run(self, task: LockedTask) -> tuple[End, bool]:
        """How the handler ended, and whether it still runs in its thread."""
        definition = task.definition
        if definition is None:
            return Ending.UNKNOWN, False
        executor, outcomes = self._slots.service.executor, self._slots.service.outcomes
        if definition.is_async:
            self._handler = asyncio.ensure_future(executor.run_async(task))
            await asyncio.wait([self._handler])
            return (Ending.RELEASE if self._handler.cancelled() else self._handler.result()), False
        self._handler = self._in_thread(executor, task)
        await asyncio.wait([self._handler], timeout=definition.timeout)
        if self._handler.cancelled():
            return Ending.RELEASE, True
        if self._handler.done():
            return self._handler.result(), False
        error = HandlerTimeout(f"the handler ran longer than {definition.timeout:g} s")
        return outcomes.raised(task.claimed, definition, error), True

    def _in_thread(self, executor: Executor, task: LockedTask) -> asyncio.Future[End]:
        """Run a sync handler; cancelling the future only ends the wait for it."""
        ended: asyncio.Future[End] = self._slots.loop.create_future()

        def tell(end: End) -> None:
            if not ended.done():
                ended.set_result(end)

        self._thread = self._thread or OneThread(self._thread_name)
        self._thread.submit(lambda: call_soon(self._slots.loop, tell, executor.run(task)))
        return ended

    def _give_up_thread(self, task: HeldTask) -> None:
        """Tell the handler, whose end in its thread nobody waits for."""
        task.lose()
        self._slots.service.counts.abandoned += 1
        thread, self._thread = self._thread, None
        if thread is not None:
            self._slots.abandoned += 1
            thread.submit(lambda: call_soon(self._slots.loop, self._thread_ended))
            thread.stop()

    def _thread_ended(self) -> None:
        self._slots.abandoned -= 1


async def _in_greenlet(function: Callable[[*Ts], R], *args: *Ts) -> R:
    """Call what uses the connection the way an AsyncEngine's must be used, to its end even when cancelled."""
    from sqlalchemy.util import greenlet_spawn

    call = asyncio.ensure_future(greenlet_spawn(function, *args))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.wait([call])
        raise
