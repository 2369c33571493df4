"""One run of a worker: starts its parts, serves until the end, and winds down."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

from sa_taskqueue.runtime import wakeups
from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.runtime.checks import pool_capacity
from sa_taskqueue.runtime.lane import FAILURES
from sa_taskqueue.runtime.listener import Listener
from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.runtime.stop import Stop
from sa_taskqueue.runtime.threads import call_soon
from sa_taskqueue.states import Status
from sa_taskqueue.store.control import Choice, list_tasks
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.notify import channel_of
from sa_taskqueue.worker.parts import LANES, Callbacks, Parts
from sa_taskqueue.worker.stop import rest_within, wind_down

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sa_taskqueue.queue import TaskQueue
    from sa_taskqueue.reservation import Reservation
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.held import HeldTask
    from sa_taskqueue.worker.settings import WorkerSettings

logger = logging.getLogger("sa_taskqueue.worker")

DUE = frozenset({Status.NEW})

DRAIN_TICK, LONGEST_DRAIN_TICK = 0.05, 1.0
"""Seconds between two looks whether a draining worker is done: they become rare while nothing runs here and the worker
still cannot end, because what is due is locked by others or the database does not answer."""


class Crew:
    """Made on the event loop by `hired`, for one run."""

    def __init__(
        self,
        queue: TaskQueue,
        portal: Portal,
        reservation: Reservation,
        settings: WorkerSettings,
        counts: Counts,
        stop: Stop,
    ) -> None:
        self._queue, self._portal, self._settings, self._counts, self._stop = queue, portal, settings, counts, stop
        self._loop = asyncio.get_running_loop()
        self.recycle = False
        """Whether the run ended because too many threads hang."""
        callbacks = Callbacks(
            wake_all=self._wake_all,
            lost=lambda task: call_soon(self._loop, self._lost, task),
            recycle=self._recycle,
            stopping=stop.requested.is_set,
        )
        self._parts = Parts(queue, portal, reservation, settings, counts, callbacks)

    @classmethod
    @asynccontextmanager
    async def hired(
        cls,
        queue: TaskQueue,
        engine: Engine | AsyncEngine,
        reservation: Reservation,
        settings: WorkerSettings,
        counts: Counts,
        stop: Stop,
    ) -> AsyncIterator[Crew | None]:
        """A crew that is connected and has found its table, None if asked to stop first; all is closed at the end."""
        queue.prepare()
        portal = Portal(engine)
        try:
            if not await stop.unless_requested(portal.start(connections=LANES)):
                yield None
                return
            crew = cls(queue, portal, reservation, settings, counts, stop)
            _warn_of_small_pool(queue, portal, reservation, settings)
            with named_errors(queue.table, portal.sync_engine):
                yield crew if await stop.unless_requested(crew._arrive()) else None
        finally:
            await portal.aclose()

    async def _arrive(self) -> None:
        await self._parts.claim_lane.run(self._parts.store.check_schema)
        await self._parts.claim_lane.run(self._parts.reservation.check)
        await self._portal.open_lanes()

    async def work(self) -> None:
        """Serve until asked to stop, drained, or done with `max_tasks`; then wind down."""
        if self._stop.requested.is_set():
            return
        parts = self._parts
        background = [asyncio.create_task(part) for part in self._background()]
        serving = {lane: asyncio.create_task(lane.run()) for lane in parts.lanes.values()}
        url, table = self._portal.sync_engine.url, self._queue.table
        unsubscribe = wakeups.subscribe(url, table, lambda queue: call_soon(self._loop, self._wake, queue))
        if parts.reservation.renewed:
            parts.renewer.start()
        try:
            await self._until_done(list(serving.values()), background)
        finally:
            unsubscribe()
            self._stop.requested.set()
            await wind_down(self._stop, serving, parts.slots, parts.finisher, self._settings.grace)
            await _cancel([*serving.values(), *background])
            await self._close()

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        parts = self._parts
        running = (parts.finisher, parts.maintenance, parts.watchdog)
        coroutines: list[Coroutine[Any, Any, None]] = [part.run() for part in running]
        if self._queue.notify:
            listener = Listener(self._portal.engine, channel_of(self._queue.table), self._wake_all)
            coroutines.append(listener.run())
        return coroutines

    async def _until_done(self, serving: list[asyncio.Task[None]], background: list[asyncio.Task[None]]) -> None:
        """Return when it is time to wind down; raise what a part raised, because without it the worker is none."""
        ends = [
            asyncio.create_task(self._stop.requested.wait()),
            asyncio.create_task(self._served(serving)),
        ]
        if self._settings.drain:
            ends.append(asyncio.create_task(self._drained()))
        try:
            watched = {*ends, *serving, *background}
            while not any(end.done() for end in ends):
                done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            await _cancel(ends)

    async def _served(self, serving: list[asyncio.Task[None]]) -> None:
        """Return when the lanes have ended by themselves, after `max_tasks`, and their handlers too."""
        await asyncio.wait(serving)
        await rest_within(self._parts.slots, math.inf)

    async def _drained(self) -> None:
        """Return when nothing is due in the queues and nothing of theirs runs here.

        A task that was claimed before the look and went back after it was seen by neither: hence the count of claims.
        """
        parts, pause = self._parts, Backoff(DRAIN_TICK, LONGEST_DRAIN_TICK)
        while True:
            await asyncio.sleep(pause.delay())
            if not self._at_rest():
                pause.reset()
                continue
            claimed = self._counts.claimed
            await parts.finisher.flush()
            try:
                due = await self._anything_due()
            except DBAPIError as error:
                logger.warning("whether anything is due cannot be seen (%s); looking again", error)
                continue
            if due:
                self._wake_all()
            elif self._counts.claimed == claimed and self._at_rest() and not parts.finisher.pending:
                return

    def _at_rest(self) -> bool:
        return all(lane.at_rest for lane in self._parts.lanes.values())

    async def _anything_due(self) -> bool:
        """Whether a task is free, after all that can become so. A read: a claim leaves out what is locked just now."""
        await self._parts.maintenance.take_over()
        next_due = await self._parts.maintenance.promote()
        if next_due is not None and next_due <= 0:
            return True  # another worker is promoting it just now, and may serve other queues
        table, names = self._queue.table, self._parts.lanes

        def look(connection: Connection) -> bool:
            return any(list_tasks(connection, table, Choice(queue=name), statuses=DUE, limit=1) for name in names)

        return await self._parts.claim_lane.run_repeatable(look)

    async def _close(self) -> None:
        parts = self._parts
        if parts.reservation.renewed:
            await asyncio.to_thread(parts.renewer.stop)
        for slots in parts.slots:
            slots.close()
        await parts.connections.close()
        if parts.reservation.reserves_apart:
            await self._end_reservation()

    async def _end_reservation(self) -> None:
        try:
            await self._parts.claim_lane.attempt(self._parts.reservation.end)
        except FAILURES as error:
            logger.warning("reservations could not be ended (%s) and will expire", error)

    def _wake(self, queue: str) -> None:
        lane = self._parts.lanes.get(queue)
        if lane is not None:
            lane.wake()

    def _wake_all(self) -> None:
        for lane in self._parts.lanes.values():
            lane.wake()

    def _lost(self, task: HeldTask) -> None:
        """The renewal has told the handler by its event; an async handler is cancelled as well."""
        self._counts.lost += 1
        for slots in self._parts.slots:
            slots.cancel(task)

    def _recycle(self) -> None:
        if not self._stop.requested.is_set():  # a second request would end the grace time of the first
            self.recycle = True
            self._stop.request()


def _warn_of_small_pool(queue: TaskQueue, portal: Portal, reservation: Reservation, settings: WorkerSettings) -> None:
    """Say so at the start if handlers might wait for each other's connections."""
    needed = LANES + sum(settings.queues.values())
    capacity = pool_capacity(portal.sync_engine.pool)
    always = reservation.claims_in_work
    if capacity < needed and (always or any(handler.takes_context for handler in queue.handlers.values())):
        logger.warning(
            "the engine's pool gives %d connections; with fewer than %d handlers wait for each other's %s",
            capacity,
            needed,
            "connections" if always else "context.session",
        )


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
