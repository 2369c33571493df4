"""One run of a relay: starts its parts, serves until the end, and winds down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

from sa_taskqueue.relay.captured import refuse_captured
from sa_taskqueue.relay.ordered import KeyShare, OrderedFlow
from sa_taskqueue.relay.parts import Tools
from sa_taskqueue.relay.pipeline import Pipeline
from sa_taskqueue.relay.shares import Keeper
from sa_taskqueue.relay.unordered import RowShare, UnorderedFlow
from sa_taskqueue.relay.upkeep import Upkeep
from sa_taskqueue.runtime import wakeups
from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.runtime.listener import Listener
from sa_taskqueue.runtime.margins import renewal_timeout
from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.runtime.threads import call_soon
from sa_taskqueue.store.drift import check_schema, check_writable
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.notify import channel_of
from sa_taskqueue.store.outbox import UnorderedMessages
from sa_taskqueue.store.outbox_keys import OrderedMessages
from sa_taskqueue.store.outbox_upkeep import OutboxUpkeep

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sa_taskqueue.queue import TaskQueue
    from sa_taskqueue.relay.counts import RelayCounts
    from sa_taskqueue.relay.routes import Routes
    from sa_taskqueue.relay.settings import RelaySettings
    from sa_taskqueue.runtime.stop import Stop

logger = logging.getLogger("sa_taskqueue.relay")

LANES = 5
"""Connections: claims of messages, claims of keys, marks, upkeep, renewal."""

DRAIN_TICK, LONGEST_DRAIN_TICK = 0.02, 1.0
"""Seconds between two looks whether a draining relay is done."""

CLAIM_PATIENCE = 2.0
"""Seconds for a claim that is under way to answer, so that what it took is given back."""


class Run:
    """Made on the event loop by `started`, for one run."""

    def __init__(
        self, queue: TaskQueue, portal: Portal, routes: Routes, settings: RelaySettings, counts: RelayCounts, stop: Stop
    ) -> None:
        self._queue, self._portal, self._settings, self._stop = queue, portal, settings, stop
        self._counts, self._loop = counts, asyncio.get_running_loop()
        outbox, adapter = queue.outbox_table, portal.adapter
        keys = None if queue.outbox_keys is None else queue.outbox_keys_table
        self._tables: list[Table] = [outbox] if keys is None else [outbox, keys]
        self._keeper = Keeper(portal.lane("renewal", timeout=renewal_timeout(settings.lease)), settings.lease)
        names = ("claims", "claims of keys", "marks")
        tools = Tools(queue, settings, counts, routes, self._keeper, *(portal.lane(name) for name in names))
        self._tools, self._routes = tools, routes
        unordered = UnorderedMessages(outbox, adapter, keyed=keys is not None)
        self._upkeep = Upkeep(
            portal.lane("upkeep"),
            outbox,
            keys,
            store=OutboxUpkeep(outbox, keys, adapter),
            unordered=unordered,
            settings=settings,
            counts=counts,
            on_due=self._wake_all,
        )
        rows = UnorderedFlow(tools, unordered, self._upkeep.unnumbered)
        self._pipelines: list[Pipeline[Any]] = [Pipeline[RowShare](rows, routes.targets, self._backoff())]
        if keys is not None:
            ordered = OrderedFlow(tools, OrderedMessages(outbox, keys, adapter), self._wake_all)
            self._pipelines.append(Pipeline[KeyShare](ordered, routes.targets, self._backoff()))

    @classmethod
    @asynccontextmanager
    async def started(
        cls,
        queue: TaskQueue,
        engine: Engine | AsyncEngine,
        routes: Routes,
        settings: RelaySettings,
        counts: RelayCounts,
        stop: Stop,
    ) -> AsyncIterator[Run | None]:
        """A run that is connected and has found its tables, None if asked to stop first; all is closed at the end."""
        refuse_captured(queue)
        queue.prepare()
        portal = Portal(engine)
        try:
            if not await stop.unless_requested(portal.start(connections=LANES)):
                yield None
                return
            run = cls(queue, portal, routes, settings, counts, stop)
            with named_errors(queue.outbox_table, portal.sync_engine):
                yield run if await stop.unless_requested(run._arrive()) else None
        finally:
            for target in routes.targets:
                await target.close()
            await portal.aclose()

    async def work(self) -> None:
        """Serve until asked to stop or drained; then let what is on its way arrive, and give back the rest."""
        if self._stop.requested.is_set():
            return
        background = [asyncio.create_task(part) for part in self._background()]
        serving = [asyncio.create_task(each.run()) for each in self._pipelines]
        url, outbox = self._portal.sync_engine.url, self._queue.outbox_table
        unsubscribe = wakeups.subscribe(url, outbox, lambda _: call_soon(self._loop, self._wake_all))
        try:
            await self._until_done([*serving, *background])
        finally:
            unsubscribe()
            self._stop.requested.set()
            await self._wind_down(serving)
            await _cancel([*serving, *background])

    async def _arrive(self) -> None:
        for table in self._tables:
            await self._tools.marks.run(check_schema, table)
            await self._tools.marks.run(check_writable, table)
        await self._portal.open_lanes()

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        parts: list[Coroutine[Any, Any, None]] = [self._upkeep.run(), self._keeper.run()]
        if self._queue.notify:
            listener = Listener(self._portal.engine, channel_of(self._queue.outbox_table), self._wake_all)
            parts.append(listener.run())
        return parts

    async def _until_done(self, parts: Sequence[asyncio.Task[None]]) -> None:
        """Return when it is time to wind down; raise what a part raised, because without it the relay is none."""
        ends: list[asyncio.Task[Any]] = [asyncio.create_task(self._stop.requested.wait())]
        if self._settings.drain:
            ends.append(asyncio.create_task(self._drained()))
        try:
            watched: set[asyncio.Task[Any]] = {*ends, *parts}
            while not any(end.done() for end in ends):
                done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            await _cancel(ends)

    async def _drained(self) -> None:
        """Return when nothing is due, and nothing was claimed since before the look."""
        pause = Backoff(DRAIN_TICK, LONGEST_DRAIN_TICK)
        while True:
            await asyncio.sleep(pause.delay())
            if not self._at_rest():
                pause.reset()
                continue
            claimed = self._counts.claimed
            try:
                due = await self._upkeep.settle()
            except DBAPIError as error:
                logger.warning("whether anything is due cannot be seen (%s); looking again", error)
                continue
            if due:
                self._wake_all()
            elif self._counts.claimed == claimed and self._at_rest():
                return

    def _at_rest(self) -> bool:
        return all(each.at_rest for each in self._pipelines)

    async def _wind_down(self, serving: Sequence[asyncio.Task[None]]) -> None:
        for each in self._pipelines:
            each.stop()
        await asyncio.wait(serving, timeout=CLAIM_PATIENCE)
        await asyncio.gather(*(each.rest(self._settings.grace, self._stop.at_once) for each in self._pipelines))

    def _wake_all(self) -> None:
        for each in self._pipelines:
            each.wake()

    def _backoff(self) -> Backoff:
        return Backoff(self._settings.poll_min, self._settings.poll_max)


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
