"""What every relay does beside sending: numbers, take-overs, what falls due, and the deletion of old messages."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from sa_taskqueue.exceptions import TaskQueueError
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.states import MessageStatus
from sa_taskqueue.store.sequences import assign_waiting

if TYPE_CHECKING:
    from sqlalchemy import Table

    from sa_taskqueue.relay.counts import RelayCounts
    from sa_taskqueue.relay.settings import RelaySettings
    from sa_taskqueue.runtime.lane import Lane
    from sa_taskqueue.store.outbox import UnorderedMessages
    from sa_taskqueue.store.outbox_upkeep import OutboxUpkeep

logger = logging.getLogger("sa_taskqueue.relay")

BATCH = 1000
"""Rows per transaction, as for tasks."""

LONGEST_SLEEP, SHORTEST_SLEEP = 1.0, 0.02
"""Seconds between two looks at what is due."""

PRUNE_INTERVAL = 60.0
"""Seconds between two rounds of deletion."""


class Upkeep:
    """Runs on a lane of its own. `on_due` is called after something became free to be claimed."""

    def __init__(
        self,
        lane: Lane,
        outbox: Table,
        keys: Table | None,
        *,
        store: OutboxUpkeep,
        unordered: UnorderedMessages,
        settings: RelaySettings,
        counts: RelayCounts,
        on_due: Callable[[], None],
    ) -> None:
        self._lane, self._outbox, self._keys = lane, outbox, keys
        self._store, self._unordered, self._settings, self._counts = store, unordered, settings, counts
        self._on_due = on_due
        self._unnumbered = asyncio.Event()

    def unnumbered(self) -> None:
        """Rows were seen that need a number."""
        self._unnumbered.set()

    async def run(self) -> None:
        """All of it, until cancelled; a failure is logged and tried again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forever("numbering", self._number_turn))
            group.create_task(self._forever("take-over", self._take_over_turn))
            group.create_task(self._forever("promotion", self._promote_turn))
            group.create_task(self._forever("pruning", self._prune_turn))

    async def settle(self) -> bool:
        """Free everything that can be free now; whether anything is."""
        await self.take_over()
        next_due = await self.promote()
        await self.number()
        return (next_due is not None and next_due <= 0) or await self._lane.run_repeatable(self._store.anything_due)

    async def number(self) -> None:
        """Give numbers to the messages of keys that came without."""
        if self._keys is None:
            return
        while True:
            numbered = await self._lane.run(self._number, self._keys)
            self._counts.numbered += numbered
            if numbered:
                self._on_due()
            if numbered < BATCH:
                return

    async def take_over(self) -> None:
        """Free the messages whose relay has died."""
        while True:
            freed = await self._lane.run_repeatable(self._take_over)
            if freed:
                logger.warning("%d messages of a lost relay are free again", freed)
                self._on_due()
            if freed < BATCH:
                return

    async def promote(self) -> float | None:
        """Free what has fallen due; seconds until the next."""
        while True:
            promoted, next_due = await self._lane.run_repeatable(self._promote)
            if promoted:
                self._on_due()
            if promoted < BATCH:
                return next_due

    async def prune(self) -> None:
        """Delete what was sent or given up long ago."""
        kept = {MessageStatus.SENT: self._settings.keep_sent, MessageStatus.FAILED: self._settings.keep_failed}
        for status, period in kept.items():
            while await self._lane.run_repeatable(self._store.prune, status, period, BATCH) == BATCH:
                pass

    def _number(self, connection: Connection, keys: Table) -> int:
        numbered = assign_waiting(connection, self._outbox, keys, BATCH)
        if numbered:
            point("relay.number.before_commit")
        return numbered

    def _take_over(self, connection: Connection) -> int:
        freed = self._unordered.take_over(connection, BATCH)
        if freed:
            point("relay.take_over.before_commit")
        return freed

    def _promote(self, connection: Connection) -> tuple[int, float | None]:
        promoted = self._store.promote(connection, BATCH)
        if promoted:
            point("relay.promote.before_commit")
        return promoted, self._store.next_due(connection)

    async def _forever(self, name: str, turn: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await turn()
            except (SQLAlchemyError, TaskQueueError) as error:
                logger.warning("%s failed (%s) and is tried again", name, error)
                await asyncio.sleep(random.uniform(LONGEST_SLEEP, 2 * LONGEST_SLEEP))  # noqa: S311 - no secret

    async def _number_turn(self) -> None:
        await self._unnumbered.wait()
        self._unnumbered.clear()
        await self.number()

    async def _take_over_turn(self) -> None:
        await self.take_over()
        await asyncio.sleep(min(self._settings.lease / 4, 5.0))

    async def _promote_turn(self) -> None:
        next_due = await self.promote()
        await asyncio.sleep(min(max(SHORTEST_SLEEP, next_due or LONGEST_SLEEP), LONGEST_SLEEP))

    async def _prune_turn(self) -> None:
        await self.prune()
        await asyncio.sleep(random.uniform(0.5, 1.5) * PRUNE_INTERVAL)  # noqa: S311 - no secret
