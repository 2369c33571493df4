"""Runs the tasks of one batch: decodes each, calls the range handler once, and says how each ended. Never raises.

All database work of the handler and the ends of all its tasks are one COMMIT. A task that was lost meanwhile is
refused there; its effect cannot be told from that of the others, so all is rolled back and the others are given back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, cast

from sa_taskqueue.context import BatchContext
from sa_taskqueue.exceptions import CommitUnknown, LeaseLost, TaskQueueError, UndecodableTask
from sa_taskqueue.items import Items
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.states import Outcome
from sa_taskqueue.worker.calling import blocks_the_loop, in_greenlet, no_session, not_awaited, not_startable, within
from sa_taskqueue.worker.ending import End, Ending
from sa_taskqueue.worker.held import HeldBatch, HeldTask
from sa_taskqueue.worker.item_savepoint import ItemSavepoint
from sa_taskqueue.worker.outcome import keeps_work

if TYPE_CHECKING:
    from sa_taskqueue.ranges import BatchDefinition
    from sa_taskqueue.store import Settlement
    from sa_taskqueue.worker.execute import Extend
    from sa_taskqueue.worker.outcome import Outcomes
    from sa_taskqueue.worker.session_scope import MakeUnit, WorkUnit

logger = logging.getLogger("sa_taskqueue.worker")


class Running:
    """The part of a batch that one call of the handler sees, and what is decided about it so far."""

    def __init__(self, batch: HeldBatch, items: Sequence[Any], unit: WorkUnit | None) -> None:
        self.batch = batch
        self.unit = unit
        self.items = Items(batch.definition.name, items, [task.claimed.id for task in batch.members])
        self.decided: dict[int, Settlement] = {}
        """What items' savepoints have decided, by index."""

    def together(self) -> bool:
        """Whether an exception says nothing about any one task."""
        return len(self.batch.members) > 1


class BatchExecutor:
    """Runs the batches of one worker, in the thread or on the loop of whoever calls it."""

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

    def run(self, batch: HeldBatch) -> list[End]:
        """Run a sync handler in this thread; an end for each task of the batch, in its order."""
        ends, running = self._prepared(batch)
        if running is None:
            return _in_order(batch, ends)
        definition, args = batch.definition, self._arguments(running)
        try:
            # A context of its own: what a handler sets there must not be seen by the thread's next task.
            value = Context().run(definition.function, *args)
        except BaseException as error:  # noqa: BLE001  whatever a handler raises ends its tasks, not the thread
            return _in_order(batch, ends | self._after_raise(running, error))
        if value is not None and isinstance(value, Awaitable):
            return _in_order(batch, ends | self._after_raise(running, not_awaited(definition.name, value)))
        point("handler.done_before_complete")
        return _in_order(batch, ends | self._after_return(running, value))

    async def run_async(self, batch: HeldBatch) -> list[End]:
        """Run an async handler as the current asyncio task."""
        ends, running = self._prepared(batch)
        if running is None:
            return _in_order(batch, ends)
        definition, args = batch.definition, self._arguments(running)
        try:
            value = await within(definition.timeout, cast("Awaitable[Any]", definition.function(*args)))
        except BaseException as error:  # noqa: BLE001  likewise
            return _in_order(batch, ends | await in_greenlet(running.unit, self._after_raise, running, error))
        point("handler.done_before_complete")
        return _in_order(batch, ends | await in_greenlet(running.unit, self._after_return, running, value))

    def _prepared(self, batch: HeldBatch) -> tuple[dict[HeldTask, End], Running | None]:
        """The ends of tasks that the handler does not see, and the rest, if any."""
        definition = cast("BatchDefinition[..., Any]", batch.definition)
        ends: dict[HeldTask, End] = {}
        tasks, items = [], []
        point("handler.start")
        for task in batch.members:
            if refused := not_startable(task):
                ends[task] = refused
                continue
            try:
                items.append(definition.decode_item(task.claimed.body))
            except UndecodableTask as error:
                ends[task] = self._outcomes.undecodable(task.claimed, error)
            else:
                tasks.append(task)
        if not tasks:
            return ends, None
        unit = self._make_unit(tasks) if definition.takes_context else None
        return ends, Running(HeldBatch(definition, tasks), items, unit)

    def _after_return(self, running: Running, value: object) -> dict[HeldTask, End]:
        try:
            chosen = running.items.outcomes(value)
        except TaskQueueError as error:
            return self._after_raise(running, error)
        definition = running.batch.definition
        members = running.batch.members
        answered = [self._outcomes.returned(task.claimed, definition, chosen[at]) for at, task in enumerate(members)]
        if isinstance(value, Outcome) and not any(map(keeps_work, answered)):
            # Also what a savepoint decided: its work is undone with the rest, or the rest would be there twice.
            return self._undone(running, answered)
        return self._close(running, [running.decided.get(at) or each for at, each in enumerate(answered)])

    def _after_raise(self, running: Running, error: BaseException) -> dict[HeldTask, End]:
        unit, members = running.unit, running.batch.members
        if not isinstance(error, Exception):
            if unit is not None:
                unit.undo()
            return {task: self._interrupted(running, task, error) for task in members}
        if unit is not None and unit.ended_by(error):
            unit.undo()
            return dict.fromkeys(members, Ending.LOST)
        if isinstance(error, Outcome):
            return self._after_return(running, error)
        return self._undone(running, [settlement for _, settlement in self._outcomes.all_raised(running.batch, error)])

    def _undone(self, running: Running, settlements: Sequence[Settlement]) -> dict[HeldTask, End]:
        if running.unit is not None:
            running.unit.undo()
        return _unless_lost(running, settlements)

    def _close(self, running: Running, settlements: Sequence[Settlement]) -> dict[HeldTask, End]:
        """Commit the handler's work with all outcomes, or roll it back and leave the outcomes to the finisher."""
        unit, members = running.unit, running.batch.members
        if unit is None or not unit.used:
            return _unless_lost(running, settlements)
        try:
            return dict(zip(members, unit.complete(settlements), strict=True))
        except LeaseLost:
            return {task: _after_loss(task, unit) for task in members}
        except CommitUnknown:
            # Perhaps it is committed. If it is not, the leases end and the tasks run again.
            logger.warning("%d tasks: no answer to the COMMIT of their work; their rows will tell", len(members))
            return dict.fromkeys(members, Ending.LOST)
        except BaseException as error:  # noqa: BLE001  the last flush runs the user's code
            return self._after_raise(running, error)

    def _interrupted(self, running: Running, task: HeldTask, error: BaseException) -> Ending:
        """SystemExit, KeyboardInterrupt or CancelledError: not the handler's failure, so no attempt is counted."""
        if task.lost:
            return Ending.LOST
        if self._stopping() or running.batch.lost:
            return Ending.RELEASE
        logger.warning("task %s (%s) ended with %r and is given back", task.claimed.id, task.claimed.name, error)
        return Ending.INTERRUPTED

    def _arguments(self, running: Running) -> tuple[Any, ...]:
        items, unit, tasks = running.items.items, running.unit, running.batch.members
        if unit is None:
            return (items,)
        is_async = running.batch.definition.is_async

        def open_session() -> Any:
            if is_async is not self._async_engine:
                raise no_session(is_async)
            return unit.async_session() if is_async else unit.session()

        def extend(seconds: float) -> None:
            if is_async:
                raise blocks_the_loop()
            asyncio.run_coroutine_threadsafe(self._extend(tasks, seconds), self._loop).result()

        def savepoint(index: int) -> ItemSavepoint:
            def decide(error: BaseException) -> bool:
                settlement = self._outcomes.raised(tasks[index].claimed, running.batch.definition, error)
                return keeps_work(running.decided.setdefault(index, settlement))

            session = context.async_session.sync_session if is_async else context.session
            return ItemSavepoint(session, decide, unit.ends_savepoint, is_async=is_async)

        context = BatchContext(
            [task.claimed for task in tasks],
            running.items,
            savepoint=savepoint,
            lost=running.batch.lost_event(),
            open_session=open_session,
            extend=extend,
            aextend=lambda seconds: self._extend(tasks, seconds),
        )
        return context, items


def _after_loss(task: HeldTask, unit: WorkUnit) -> Ending:
    """All was rolled back because one task is held no more; the others are to be run again, no attempt counted."""
    if task.lost:
        return Ending.LOST
    return Ending.REFUSED if task.claimed.id in unit.refused else Ending.RELEASE


def _unless_lost(running: Running, settlements: Sequence[Settlement]) -> dict[HeldTask, End]:
    members = running.batch.members
    return {task: Ending.LOST if task.lost else one for task, one in zip(members, settlements, strict=True)}


def _in_order(batch: HeldBatch, ends: dict[HeldTask, End]) -> list[End]:
    return [ends[task] for task in batch.members]
