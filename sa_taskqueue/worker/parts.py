"""Builds what one run of a worker consists of; `Crew` runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sa_taskqueue import telemetry
from sa_taskqueue.exceptions import LeaseLost
from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.runtime.checks import pool_capacity
from sa_taskqueue.runtime.margins import renewal_timeout, safety_margin
from sa_taskqueue.runtime.side import SideLane
from sa_taskqueue.store import TaskStore
from sa_taskqueue.worker.claim import Claimer
from sa_taskqueue.worker.demand import Demand
from sa_taskqueue.worker.execute import Executor, Extend
from sa_taskqueue.worker.finisher import Finisher, UnknownNames
from sa_taskqueue.worker.held import HeldTask, HeldTasks
from sa_taskqueue.worker.locked_lane import LockedLane
from sa_taskqueue.worker.locked_parts import LockedParts
from sa_taskqueue.worker.maintenance import Maintenance
from sa_taskqueue.worker.outcome import Outcomes
from sa_taskqueue.worker.queue_lane import QueueLane
from sa_taskqueue.worker.renewal import Renewer
from sa_taskqueue.worker.session_scope import WorkConnections, WorkUnit
from sa_taskqueue.worker.slots import Slots
from sa_taskqueue.worker.watchdog import Watchdog

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskQueue
    from sa_taskqueue.reservation import InWork, Reservation
    from sa_taskqueue.runtime.lane import Lane
    from sa_taskqueue.runtime.portal import Portal
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.roles import ServingLane, ServingSlots
    from sa_taskqueue.worker.settings import WorkerSettings

LANES = 3
"""Connections a worker holds from the engine's pool beside those of handlers: claim, finish, maintenance."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """How the parts reach whoever runs them."""

    wake_all: Callable[[], None]
    """Tasks became free. On the loop."""
    lost: Callable[[HeldTask], None]
    """The renewal lost a task. In the renewal's threads."""
    recycle: Callable[[], None]
    """Too many threads hang. On the loop."""
    stopping: Callable[[], bool]


class Parts:
    """The parts of one run, on one loop, over a portal that has been started."""

    def __init__(
        self,
        queue: TaskQueue,
        portal: Portal,
        reservation: Reservation,
        settings: WorkerSettings,
        counts: Counts,
        callbacks: Callbacks,
    ) -> None:
        self._queue, self._settings, self._counts, self._callbacks = queue, settings, counts, callbacks
        self.reservation = reservation
        self.store = TaskStore(
            queue.table, portal.adapter, queue.crash_notes_table, reservations=queue.reservation_table
        )
        reservation.bind(
            self.store, portal.adapter, lease=settings.lease, by=settings.name, max_crashes=settings.max_crashes
        )
        self.held = HeldTasks()
        self.outcomes = Outcomes(queue.retention)
        self.connections = WorkConnections(
            portal.sync_engine,
            portal.adapter,
            is_async=portal.is_async,
            at_most=pool_capacity(portal.sync_engine.pool) - LANES,
        )
        self.claim_lane = portal.lane("claim", autocommit=reservation.reserves_apart)
        # One writer at a time anyway: two lanes would only wait for each other in SQLite's busy handler.
        self.finish_lane = self.claim_lane if portal.adapter.single_writer else portal.lane("finish")
        self.renewing_lane = self.claim_lane if reservation.reserves_apart else self.finish_lane
        self.slots: list[ServingSlots] = []
        self.lanes: dict[str, ServingLane] = {}
        self.finisher = self._finisher(portal)
        self.maintenance = self._maintenance(portal.lane("maintenance"))
        self.renewer = self._renewer(portal)
        if reservation.claims_in_work:
            self._build_locked_queues(portal)
        else:
            self._build_queues(portal)
        self.watchdog = Watchdog(
            self.slots,
            self.outcomes,
            self.finisher,
            counts,
            max_abandoned=settings.max_abandoned,
            recycle=callbacks.recycle,
        )

    def _finisher(self, portal: Portal) -> Finisher:
        settings = self._settings
        return Finisher(
            self.finish_lane,
            self.reservation,
            self.held,
            self._counts,
            batch=settings.batch,
            unknown=self._unknown_names(),
            classify=portal.adapter.classify,
            more_expected=lambda: any(slots.waiting for slots in self.slots),
        )

    def _maintenance(self, lane: Lane) -> Maintenance:
        return Maintenance(
            lane,
            self.store,
            lease=self._settings.lease,
            max_crashes=self._settings.max_crashes,
            retention=self._queue.retention,
            on_due=self._callbacks.wake_all,
            inbox=None if self._queue.inbox is None else (self._queue.inbox_table, self._queue.inbox_retention),
        )

    def _renewer(self, portal: Portal) -> Renewer:
        lease = self._settings.lease
        return Renewer(
            self.held,
            self.reservation,
            # pyright does not match a ParamSpec with the one call that the renewal makes
            lambda: SideLane(  # pyright: ignore[reportArgumentType]
                portal.engine, timeout=renewal_timeout(lease), autocommit=self.reservation.reserves_apart
            ),
            lease=lease,
            on_lost=self._callbacks.lost,
        )

    def _unknown_names(self) -> UnknownNames:
        return UnknownNames(self._settings.unknown_delay, self._settings.unknown_after)

    def _build_locked_queues(self, portal: Portal) -> None:
        parts = LockedParts(
            portal, cast("InWork", self.reservation), self.connections, self.held, self._unknown_names()
        )
        service = parts.service(
            self._queue.handlers,
            self.outcomes,
            self.finisher,
            self._counts,
            extender(self.finish_lane, self.reservation, self.held, self._counts),
            max_tasks=self._settings.max_tasks,
            stopping=self._callbacks.stopping,
        )
        for name, concurrency in self._settings.queues.items():
            slots = parts.slots(name, concurrency, service)
            backoff = Backoff(self._settings.poll_min, self._settings.poll_max)
            self.slots.append(slots)
            self.lanes[name] = LockedLane(slots, service.quota, backoff, on_empty=self.maintenance.claim_was_empty)

    def _largest_batch(self, queue: str) -> int:
        """Of the handlers whose tasks go to the queue as a rule."""
        handlers = self._queue.handlers.values()
        return max((handler.batch or 1 for handler in handlers if handler.queue == queue), default=1)

    def _build_queues(self, portal: Portal) -> None:
        settings = self._settings
        claimer = Claimer(
            self.claim_lane,
            self.reservation,
            self.held,
            self._counts,
            lease=settings.lease,
            max_tasks=settings.max_tasks,
        )
        executor = Executor(
            self.outcomes,
            lambda tasks: WorkUnit(self.connections, self.reservation, self.held, tasks),
            extender(self.renewing_lane, self.reservation, self.held, self._counts),
            async_engine=portal.is_async,
            stopping=self._callbacks.stopping,
        )
        for name, concurrency in settings.queues.items():
            lane = QueueLane(
                name,
                claimer,
                self.finisher,
                Demand(concurrency, settings.prefetch, settings.batch, self._largest_batch(name)),
                Backoff(settings.poll_min, settings.poll_max),
                self._queue.handlers,
                on_empty=self.maintenance.claim_was_empty,
            )
            slots = Slots(name, concurrency, executor.run, executor.run_async, self.finisher, lane.want)
            slots.patient = not settings.drain
            lane.serve(slots)
            self.slots.append(slots)
            self.lanes[name] = lane


def extender(lane: Lane, reservation: Reservation, held: HeldTasks, counts: Counts) -> Extend:
    """What `context.extend` does: renew at once, and by the longer lease from then on."""

    async def extend(tasks: Sequence[HeldTask], seconds: float) -> None:
        for task in tasks:
            if task.lost:
                raise LeaseLost(id=task.claimed.id, epoch=task.claimed.epoch)
        lease = max(seconds, *(task.lease for task in tasks))
        for task in tasks:
            task.lease = lease
        if held.owns_write_lock:
            return  # nobody can take the tasks over before the write lock is free, and the renewal follows then
        sent_at = time.monotonic()
        extended, standing = await lane.run_repeatable(reservation.renew, [task.pair for task in tasks], lease=lease)
        held.renewed(extended, sent_at + lease - safety_margin(lease))
        gone = [task for task in tasks if task.claimed.id not in extended | standing]
        for task in gone:
            if held.mark_lost(task.pair) is not None:
                counts.lost += 1
                telemetry.emit(telemetry.LeasesLost((task.claimed.id,)))
        if gone:
            raise LeaseLost(id=gone[0].claimed.id, epoch=gone[0].claimed.epoch)

    return extend
