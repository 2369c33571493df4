"""What every worker does beside running tasks: take over lost ones, promote due ones, delete old ones."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table
from sqlalchemy.exc import SQLAlchemyError

from sa_taskqueue import telemetry
from sa_taskqueue.exceptions import TaskQueueError
from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.lane import Lane
from sa_taskqueue.states import Status
from sa_taskqueue.store import prune_inbox

if TYPE_CHECKING:
    from sa_taskqueue.store import TakenOver, TaskStore

logger = logging.getLogger("sa_taskqueue.worker")

BATCH = 1000
"""Rows per transaction: promoting 1,000 took 69 ms on PostgreSQL and 234 ms on MySQL with their index (2026-11-30)."""

LONGEST_SLEEP = 1.0
"""Seconds: a task scheduled meanwhile for the next moment is promoted at most this late."""

SHORTEST_SLEEP = 0.02
"""Seconds: while another worker promotes, the next due time is past; the pause doubles as long as that lasts."""

JITTER = 0.05
"""Seconds by which workers that wait for the same due time are spread."""

PRUNE_INTERVAL = 60.0
"""Seconds between two rounds of deletion."""

TAKE_OVER_SPACING = 1.0
"""Seconds between two take-overs on demand: an idle worker's empty claims must not each cost another statement."""


class Maintenance:
    """Runs on a lane of its own. `on_due` is called after tasks became free, so that the worker claims at once.

    `inbox` is a table of what was received, and how long its rows are kept.
    """

    def __init__(
        self,
        lane: Lane,
        store: TaskStore,
        *,
        lease: float,
        max_crashes: int,
        retention: Mapping[Status, timedelta],
        on_due: Callable[[], None],
        inbox: tuple[Table, timedelta] | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._lane = lane
        self._store = store
        self._lease = lease
        self._max_crashes = max_crashes
        self._retention = retention
        self._on_due = on_due
        self._inbox = inbox
        self._uniform = uniform
        self._claim_was_empty = asyncio.Event()
        self._left_to_another = Backoff(SHORTEST_SLEEP, LONGEST_SLEEP)

    def claim_was_empty(self) -> None:
        """A claim returned nothing: look for lost tasks before the next turn."""
        self._claim_was_empty.set()

    async def run(self) -> None:
        """Take over, promote and prune until cancelled; a failure is logged and tried again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forever("take-over", self._take_over_turn))
            group.create_task(self._forever("promotion", self._promote_turn))
            group.create_task(self._forever("pruning", self._prune_turn))

    async def take_over(self) -> tuple[int, int]:
        """Free the tasks whose lease has ended, all of them; how many are free, and how many crashed too often."""
        freed = failed = 0
        while True:
            taken = await self._lane.run_repeatable(self._take_over_batch)
            freed, failed = freed + len(taken.freed), failed + len(taken.failed)
            if len(taken.freed) + len(taken.failed) < BATCH:
                break
        if freed or failed:
            logger.warning("%d lost tasks are free again, %d failed because they crashed too often", freed, failed)
            telemetry.emit(telemetry.TasksTakenOver(freed, failed))
            self._on_due()
        return freed, failed

    async def promote(self) -> float | None:
        """Free the tasks that have fallen due, batch after full batch; seconds until the next, None if none waits.

        One worker per table does it at a time, because a herd takes longer (14.2 s against 10.1 s for 100,000 on MySQL,
        2026-11-30); for the others the next due time is then already past.
        """
        while True:
            promoted, next_due = await self._lane.run_repeatable(self._promote_batch)
            if promoted:
                telemetry.emit(telemetry.TasksPromoted(promoted))
                self._on_due()
            if promoted < BATCH:
                return next_due

    async def prune(self) -> int:
        """Delete finished tasks, and what the inbox keeps, whose retention has passed; how many."""
        total = 0
        for status, retention in self._retention.items():
            pruned = await self._in_batches(self._store.prune, status, retention)
            if pruned:
                telemetry.emit(telemetry.TasksPruned(status, pruned))
            total += pruned
        if self._inbox is not None:
            total += await self._in_batches(prune_inbox, *self._inbox)
        return total

    async def _in_batches(self, prune: Callable[..., int], *which: object) -> int:
        total = 0
        while True:
            pruned = await self._lane.run_repeatable(prune, *which, BATCH)
            total += pruned
            if pruned < BATCH:
                return total

    def _take_over_batch(self, connection: Connection) -> TakenOver:
        taken = self._store.take_over(connection, BATCH, max_crashes=self._max_crashes)
        if taken.freed or taken.failed:
            point("take_over.before_commit")
        return taken

    def _promote_batch(self, connection: Connection) -> tuple[int, float | None]:
        """How many were promoted, none while another worker does it, and the seconds until the next is due."""
        promoted = self._store.promote(connection, BATCH)
        if promoted:
            point("promote.before_commit")
        return promoted, self._store.next_due(connection)

    async def _forever(self, name: str, turn: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await turn()
            except (SQLAlchemyError, TaskQueueError) as error:
                logger.warning("%s failed (%s) and is tried again", name, error)
                await asyncio.sleep(self._uniform(LONGEST_SLEEP, 2 * LONGEST_SLEEP))

    async def _take_over_turn(self) -> None:
        await self.take_over()
        await asyncio.sleep(min(TAKE_OVER_SPACING, self._lease / 4))
        self._claim_was_empty.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._lease / 4):
                await self._claim_was_empty.wait()

    async def _promote_turn(self) -> None:
        next_due = await self.promote()
        await asyncio.sleep(self._pause(next_due) + self._uniform(0.0, JITTER))

    def _pause(self, next_due: float | None) -> float:
        """Seconds until the next look."""
        if next_due is not None and next_due <= 0:
            return self._left_to_another.delay()
        self._left_to_another.reset()
        return LONGEST_SLEEP if next_due is None else min(max(next_due, SHORTEST_SLEEP), LONGEST_SLEEP)

    async def _prune_turn(self) -> None:
        await self.prune()
        await asyncio.sleep(self._uniform(0.5, 1.5) * PRUNE_INTERVAL)
