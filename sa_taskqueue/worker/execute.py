"""Runs one task: decodes its body, calls the handler, and says how it ended. Never raises."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, cast

from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import (
    CommitUnknown,
    ConfigurationError,
    InvalidHandler,
    InvalidSetting,
    LeaseLost,
    UndecodableTask,
)
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.states import Status
from sa_taskqueue.worker.ending import Committed, End, Ending
from sa_taskqueue.worker.outcome import HandlerTimeout

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition
    from sa_taskqueue.store import Settlement
    from sa_taskqueue.worker.held import HeldTask
    from sa_taskqueue.worker.outcome import Outcomes
    from sa_taskqueue.worker.session_scope import MakeUnit, WorkUnit

logger = logging.getLogger("sa_taskqueue.worker")

Extend = Callable[["HeldTask", float], Coroutine[Any, Any, None]]


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

    def run(self, task: HeldTask) -> End:
        """Run a sync handler in this thread."""
        definition = task.handler
        if refused := _not_startable(task):
            return refused
        point("handler.start")
        try:
            args, kwargs = definition.decode(task.claimed.body)
        except UndecodableTask as error:
            return self._outcomes.undecodable(task.claimed, error)
        unit = self._make_unit(task) if definition.takes_context else None
        try:
            # A context of its own: what a handler sets there must not be seen by the thread's next task.
            if unit is None:
                value = Context().run(definition.function, *args, **kwargs)
            else:
                value = Context().run(definition.function, self._context(task, unit), *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  whatever a handler raises ends its task, not the thread
            return self._after_raise(task, definition, error, unit)
        if value is not None and isinstance(value, Awaitable):
            return self._after_raise(task, definition, _not_awaited(task, value), unit)
        point("handler.done_before_complete")
        return self._after_return(task, definition, value, unit)

    async def run_async(self, task: HeldTask) -> End:
        """Run an async handler as the current asyncio task."""
        definition = task.handler
        if refused := _not_startable(task):
            return refused
        point("handler.start")
        try:
            args, kwargs = definition.decode(task.claimed.body)
        except UndecodableTask as error:
            return self._outcomes.undecodable(task.claimed, error)
        unit = self._make_unit(task) if definition.takes_context else None
        if unit is not None:
            args = (self._context(task, unit), *args)
        try:
            value = await _within(definition.timeout, cast("Awaitable[Any]", definition.function(*args, **kwargs)))
        except BaseException as error:  # noqa: BLE001  likewise
            return await self._in_greenlet(unit, self._after_raise, task, definition, error, unit)
        point("handler.done_before_complete")
        return await self._in_greenlet(unit, self._after_return, task, definition, value, unit)

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
        if task.lost or not _keeps_work(settlement):
            unit.undo()
            return Ending.LOST if task.lost else settlement
        try:
            unit.complete(settlement)
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
        return Committed(settlement)

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
                raise _no_session(is_async)
            return unit.async_session() if is_async else unit.session()

        def extend(seconds: float) -> None:
            if is_async:
                raise _blocks_the_loop()
            asyncio.run_coroutine_threadsafe(self._extend(task, seconds), self._loop).result()

        return TaskContext(
            task.claimed,
            lost=task.lost_event(),
            open_session=open_session,
            extend=extend,
            aextend=lambda seconds: self._extend(task, seconds),
        )

    async def _in_greenlet(self, unit: WorkUnit | None, function: Callable[..., End], *args: Any) -> End:
        """Call what may use the unit's connection the way an AsyncEngine's connection must be used."""
        if unit is None or not unit.used:
            return function(*args)
        from sqlalchemy.util import greenlet_spawn

        ending = asyncio.ensure_future(greenlet_spawn(function, *args))
        while not ending.done():
            # A cancel that comes now, such as that of a stop, must not cut a COMMIT in two.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([ending])
        return ending.result()


def _not_startable(task: HeldTask) -> Ending | None:
    """A task that waited past its deadline may be somebody else's by now."""
    if task.lost:
        return Ending.LOST
    return Ending.RELEASE if time.monotonic() >= task.deadline else None


def _keeps_work(settlement: Settlement) -> bool:
    """Whether the handler's work is committed: completed, cancelled and snoozed it is; failed and retried it is not."""
    if settlement.status is Status.SCHEDULED:
        return not settlement.count_attempt
    return settlement.status is not Status.FAILED


async def _within(timeout: float | None, handler: Awaitable[Any]) -> Any:
    if timeout is None:
        return await handler
    scope = asyncio.timeout(timeout)
    try:
        async with scope:
            return await handler
    except TimeoutError as error:
        if scope.expired():
            raise HandlerTimeout(f"the handler ran longer than {timeout:g} s") from error
        raise


def _not_awaited(task: HeldTask, value: Awaitable[Any]) -> InvalidHandler:
    """The error for a sync function that returned a coroutine: nothing of it has run."""
    if isinstance(value, Coroutine):
        value.close()
    return InvalidHandler(name=task.claimed.name, reason="it returned an awaitable, but is not an async function")


def _blocks_the_loop() -> InvalidSetting:
    value = "called by an async handler, whose loop it would block for ever"
    return InvalidSetting(setting="context.extend", value=value, allowed="replaced by: await context.aextend(seconds)")


def _no_session(is_async: bool) -> ConfigurationError:
    handler, engine = ("async", "AsyncEngine") if is_async else ("sync", "Engine")
    value = f"asked for by an {handler} handler"
    return InvalidSetting(setting="context.session", value=value, allowed=f"used with an {engine}")
