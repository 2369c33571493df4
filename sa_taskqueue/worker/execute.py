"""Runs one task: decodes its body, calls the handler, and says how it ended. Never raises."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, cast

from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import CommitUnknown, LeaseLost, UndecodableTask
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.worker.calling import blocks_the_loop, in_greenlet, no_session, not_awaited, not_startable, within
from sa_taskqueue.worker.ending import End, Ending, Ends
from sa_taskqueue.worker.execute_batch import BatchExecutor
from sa_taskqueue.worker.held import HeldBatch
from sa_taskqueue.worker.outcome import keeps_work

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition
    from sa_taskqueue.store import Settlement
    from sa_taskqueue.worker.held import HeldTask, Unit
    from sa_taskqueue.worker.outcome import Outcomes
    from sa_taskqueue.worker.session_scope import MakeUnit, WorkUnit

logger = logging.getLogger("sa_taskqueue.worker")

Extend = Callable[["Sequence[HeldTask]", float], Coroutine[Any, Any, None]]


class Executor:
    """Runs the tasks of one worker, in the thread or on the loop of whoever calls it."""

    def __init__(
        self,
        outcomes: Outcomes,
        make_unit: MakeUnit,
        extend: Extend,
        *,
        async_engine: bool,
        stopping: Callable[[], bool],
    ) -> None:
        self._outcomes = outcomes
        self._make_unit = make_unit
        self._extend = extend
        self._async_engine = async_engine
        self._stopping = stopping
        self._loop = asyncio.get_running_loop()
        self._batches = BatchExecutor(outcomes, make_unit, extend, async_engine=async_engine, stopping=stopping)

    def run(self, task: Unit) -> Ends:
        """Run a sync handler in this thread."""
        if isinstance(task, HeldBatch):
            return self._batches.run(task)
        definition = task.handler
        if refused := not_startable(task):
            return refused
        point("handler.start")
        try:
            args, kwargs = definition.decode(task.claimed.body)
        except UndecodableTask as error:
            return self._outcomes.undecodable(task.claimed, error)
        unit = self._make_unit([task]) if definition.takes_context else None
        try:
            # A context of its own: what a handler sets there must not be seen by the thread's next task.
            if unit is None:
                value = Context().run(definition.function, *args, **kwargs)
            else:
                value = Context().run(definition.function, self._context(task, unit), *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  whatever a handler raises ends its task, not the thread
            return self._after_raise(task, definition, error, unit)
        if value is not None and isinstance(value, Awaitable):
            return self._after_raise(task, definition, not_awaited(task.claimed.name, value), unit)
        point("handler.done_before_complete")
        return self._after_return(task, definition, value, unit)

    async def run_async(self, task: Unit) -> Ends:
        """Run an async handler as the current asyncio task."""
        if isinstance(task, HeldBatch):
            return await self._batches.run_async(task)
        definition = task.handler
        if refused := not_startable(task):
            return refused
        point("handler.start")
        try:
            args, kwargs = definition.decode(task.claimed.body)
        except UndecodableTask as error:
            return self._outcomes.undecodable(task.claimed, error)
        unit = self._make_unit([task]) if definition.takes_context else None
        if unit is not None:
            args = (self._context(task, unit), *args)
        try:
            value = await within(definition.timeout, cast("Awaitable[Any]", definition.function(*args, **kwargs)))
        except BaseException as error:  # noqa: BLE001  likewise
            return await in_greenlet(unit, self._after_raise, task, definition, error, unit)
        point("handler.done_before_complete")
        return await in_greenlet(unit, self._after_return, task, definition, value, unit)

    def _after_return(
        self, task: HeldTask, definition: TaskDefinition[..., Any], value: object, unit: WorkUnit | None
    ) -> End:
        settlement = self._outcomes.returned(task.claimed, definition, value)
        return self._close(task, definition, unit, settlement)

    def _after_raise(
        self, task: HeldTask, definition: TaskDefinition[..., Any], error: BaseException, unit: WorkUnit | None
    ) -> End:
        if not isinstance(error, Exception):
            if unit is not None:
                unit.undo()
            return self._interrupted(task, error)
        if unit is not None and unit.ended_by(error):
            unit.undo()
            return Ending.LOST
        return self._close(task, definition, unit, self._outcomes.raised(task.claimed, definition, error))

    def _close(
        self, task: HeldTask, definition: TaskDefinition[..., Any], unit: WorkUnit | None, settlement: Settlement
    ) -> End:
        """Commit the handler's work with the outcome, or roll it back and leave the outcome to the finisher."""
        if unit is None or not unit.used:
            return Ending.LOST if task.lost else settlement
        if task.lost or not keeps_work(settlement):
            unit.undo()
            return Ending.LOST if task.lost else settlement
        try:
            return unit.complete([settlement])[0]
        except LeaseLost:
            return Ending.LOST if task.lost else Ending.REFUSED
        except CommitUnknown:
            # Perhaps it is committed. If it is not, the lease ends and the task runs again.
            logger.warning("task %s: no answer to the COMMIT of its work; its row will tell", task.claimed.id)
            return Ending.LOST
        except Exception as error:  # noqa: BLE001  the last flush runs the user's code
            if unit.ended_by(error):
                return Ending.LOST
            return self._outcomes.raised(task.claimed, definition, error)
        except BaseException as error:  # noqa: BLE001  likewise
            return self._interrupted(task, error)

    def _interrupted(self, task: HeldTask, error: BaseException) -> Ending:
        """SystemExit, KeyboardInterrupt or CancelledError: not the handler's failure, so no attempt is counted."""
        if task.lost:
            return Ending.LOST
        if self._stopping():
            return Ending.RELEASE
        logger.warning("task %s (%s) ended with %r and is given back", task.claimed.id, task.claimed.name, error)
        return Ending.INTERRUPTED

    def _context(self, task: HeldTask, unit: WorkUnit) -> TaskContext:
        is_async = task.handler.is_async

        def open_session() -> Any:
            if is_async is not self._async_engine:
                raise no_session(is_async)
            return unit.async_session() if is_async else unit.session()

        def extend(seconds: float) -> None:
            if is_async:
                raise blocks_the_loop()
            asyncio.run_coroutine_threadsafe(self._extend([task], seconds), self._loop).result()

        return TaskContext(
            task.claimed,
            lost=task.lost_event(),
            open_session=open_session,
            extend=extend,
            aextend=lambda seconds: self._extend([task], seconds),
        )
