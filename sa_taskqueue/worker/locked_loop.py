"""A slot over an AsyncEngine: its transaction is on the loop, sync handlers run in a thread beside it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.threads import OneThread, call_soon
from sa_taskqueue.worker.ending import End, Ending, Ends
from sa_taskqueue.worker.held import HeldBatch, Unit
from sa_taskqueue.worker.locked_round import Round, all_of
from sa_taskqueue.worker.locked_slots import CLAIM_FAILURES, LockedSlots, not_claimed
from sa_taskqueue.worker.outcome import HandlerTimeout

if TYPE_CHECKING:
    from sa_taskqueue.worker.execute import Executor
    from sa_taskqueue.worker.finisher import Ended
    from sa_taskqueue.worker.locked_work import LockedTask, LockedWork

logger = logging.getLogger("sa_taskqueue.worker")

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


class LoopSlot:
    """One task at a time, as asyncio tasks of the worker's loop."""

    def __init__(self, slots: LockedSlots, number: int, work: LockedWork) -> None:
        self.task: Unit | None = None
        self.started = 0.0
        self.abandoned = False
        self._slots = slots
        self._work = work
        self._thread_name = f"sa_taskqueue-{slots.name}-{number}"
        self._thread: OneThread | None = None
        self._serving: asyncio.Task[None] | None = None
        self._handler: asyncio.Future[Ends] | None = None

    async def look(self) -> bool:
        """Claim tasks, and run them and others in a task of its own."""
        tasks = await self._claim()
        if not tasks:
            await self._park()
            return False
        self._serving = self._slots.loop.create_task(self._serve(tasks))
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

    async def _serve(self, tasks: Sequence[LockedTask]) -> None:
        while tasks:
            self._slots.ended(self, await self._run_all(tasks))
            tasks = () if self._slots.stopping else await self._claim()
        await self._park()

    async def _run_all(self, tasks: Sequence[LockedTask]) -> list[Ended]:
        run = Round(self._work, tasks)
        for unit in run.units:
            if len(tasks) > 1 and (self._slots.service.stopping() or not await self._noted(unit)):
                break
            self._slots.begin(self, unit)
            ends, late = await self._run(unit)
            if len(tasks) == 1:
                ended = await _in_greenlet(run.finish_one, ends, self.started)
                if late:
                    self._give_up_thread(unit)
                return ended
            stands = run.add(unit, ends, self.started)
            if late:
                ended = await _in_greenlet(run.finish)
                self._give_up_thread(unit)
                return ended
            if not stands:
                break
        return await _in_greenlet(run.finish)

    async def _noted(self, unit: Unit) -> bool:
        service = self._slots.service
        if service.note is None:
            return True
        try:
            for task in unit.members:
                await service.note(task.claimed)
            point("claim.noted")
        except CLAIM_FAILURES as error:
            logger.warning("queue %s: an attempt cannot be noted: %s", self._slots.name, error)
            return False
        return True

    async def _park(self) -> None:
        await _in_greenlet(self._work.rest)
        self._slots.park(self)

    async def _claim(self) -> Sequence[LockedTask]:
        service = self._slots.service
        wanted = service.quota.take(self._work.most)
        if not wanted:
            return ()
        tasks: list[LockedTask] = []
        sent_at = time.monotonic()
        try:
            tasks = await _in_greenlet(self._work.claim, wanted)
            if len(tasks) == 1 and service.note is not None:
                await service.note(tasks[0].claimed)
                point("claim.noted")
        except CLAIM_FAILURES as error:
            tasks = []
            await _in_greenlet(not_claimed, self._slots.name, self._work, error)
        finally:
            service.quota.answered(wanted, len(tasks))
        if tasks:
            self._slots.claimed(tasks, time.monotonic() - sent_at)
        return tasks

    async def _run(self, task: Unit) -> tuple[Ends, bool]:
        """How the handler ended, and whether it still runs in its thread."""
        definition = task.definition
        if definition is None:
            return Ending.UNKNOWN, False
        executor, outcomes = self._slots.service.executor, self._slots.service.outcomes
        if definition.is_async:
            self._handler = asyncio.ensure_future(executor.run_async(task))
            await asyncio.wait([self._handler])
            return (all_of(task, Ending.RELEASE) if self._handler.cancelled() else self._handler.result()), False
        self._handler = self._in_thread(executor, task)
        await asyncio.wait([self._handler], timeout=definition.timeout)
        if self._handler.cancelled():
            return all_of(task, Ending.RELEASE), True
        if self._handler.done():
            return self._handler.result(), False
        error = HandlerTimeout(f"the handler ran longer than {definition.timeout:g} s")
        settlements: list[End] = [settlement for _, settlement in outcomes.all_raised(task, error)]
        return (settlements if isinstance(task, HeldBatch) else settlements[0]), True

    def _in_thread(self, executor: Executor, task: Unit) -> asyncio.Future[Ends]:
        """Run a sync handler; cancelling the future only ends the wait for it."""
        ended: asyncio.Future[Ends] = self._slots.loop.create_future()

        def tell(end: Ends) -> None:
            if not ended.done():
                ended.set_result(end)

        self._thread = self._thread or OneThread(self._thread_name)
        self._thread.submit(lambda: call_soon(self._slots.loop, tell, executor.run(task)))
        return ended

    def _give_up_thread(self, task: Unit) -> None:
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
