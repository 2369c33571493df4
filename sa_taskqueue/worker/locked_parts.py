"""Builds the slots of a worker whose strategy claims in the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from sa_taskqueue.worker.execute import Executor, Extend
from sa_taskqueue.worker.locked_slots import LockedSlot, LockedSlots, Service, ThreadSlot
from sa_taskqueue.worker.locked_work import LockedTask, LockedWork
from sa_taskqueue.worker.quota import Quota

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition
    from sa_taskqueue.reservation import InWork
    from sa_taskqueue.runtime.portal import Portal
    from sa_taskqueue.store import Claimed
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.finisher import Finisher, UnknownNames
    from sa_taskqueue.worker.held import HeldTask, HeldTasks
    from sa_taskqueue.worker.outcome import Outcomes
    from sa_taskqueue.worker.session_scope import WorkConnections, WorkUnit


class LockedParts:
    """What is the same for all queues."""

    def __init__(
        self,
        portal: Portal,
        reservation: InWork,
        connections: WorkConnections,
        held: HeldTasks,
        unknown: UnknownNames,
    ) -> None:
        self._portal = portal
        self._reservation = reservation
        self._connections = connections
        self._held = held
        self._unknown = unknown

    def service(
        self,
        handlers: Mapping[str, TaskDefinition[..., Any]],
        outcomes: Outcomes,
        finisher: Finisher,
        counts: Counts,
        extend: Extend,
        *,
        max_tasks: int | None,
        stopping: Callable[[], bool],
    ) -> Service:
        """What the slots share."""
        executor = Executor(outcomes, _unit, extend, async_engine=self._portal.is_async, stopping=stopping)
        return Service(executor, outcomes, finisher, counts, Quota(max_tasks), handlers, self._note(), stopping)

    def slots(self, name: str, concurrency: int, service: Service) -> LockedSlots:
        """The slots of one queue."""

        def make(slots: LockedSlots, number: int) -> LockedSlot:
            work = LockedWork(self._connections, self._reservation, self._held, name, self._unknown)
            if not self._portal.is_async:
                return ThreadSlot(slots, number, work)
            from sa_taskqueue.worker.locked_loop import LoopSlot

            return LoopSlot(slots, number, work)

        return LockedSlots(name, concurrency, service, make)

    def _note(self) -> Callable[[Claimed], Any] | None:
        if not self._reservation.count_crashes:
            return None
        lane = self._portal.lane("crash notes")

        async def note(claimed: Claimed) -> None:
            await lane.run_repeatable(self._reservation.note, claimed)

        return note


def _unit(tasks: Sequence[HeldTask]) -> WorkUnit:
    return cast("LockedTask", tasks[0]).work.unit(tasks)
