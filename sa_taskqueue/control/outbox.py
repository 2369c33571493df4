"""`OutboxControl`: an operator's hands on one outbox."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sqlalchemy import Engine, Table

from sa_taskqueue.control.base import BATCH, Hands
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.relay.captured import refuse_captured
from sa_taskqueue.store import outbox_control as messages
from sa_taskqueue.store.outbox_control import BlockedKey, OutboxStatistics, Selection

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

KEYS_AT_ONCE = 100
"""Keys set back in one transaction, each with all its messages."""


class OutboxControl(Hands):
    """Looks at the messages of one queue's outbox and sends them again: `async with OutboxControl(queue, engine)`.

    Each change is committed in batches and raises the epoch: a relay that holds the message or key cannot mark it.
    """

    def __init__(self, queue: TaskQueue, engine: Engine | AsyncEngine) -> None:
        refuse_captured(queue)
        super().__init__(queue.outbox_table, engine)
        self._keys = None if queue.outbox_keys is None else queue.outbox_keys_table

    async def statistics(self) -> OutboxStatistics:
        """Messages and keys by status."""
        return await self._run(messages.outbox_statistics, self._table, self._keys)

    async def blocked(self, limit: int = 100) -> list[BlockedKey]:
        """The keys that wait for an operator, the longest waiting first."""
        return [] if self._keys is None else await self._run(messages.blocked_keys, self._table, self._keys, limit)

    async def replay(
        self,
        *,
        since: dt.datetime | dt.timedelta | None = None,
        until: dt.datetime | None = None,
        topic: str | None = None,
        key: str | None = None,
    ) -> int:
        """Send again what was confirmed in that time and is kept; how many messages.

        Datetimes are aware; a timedelta is so long ago by the database's clock. `until` is at most now. Messages keep
        id, key and number: consumers behind an inbox that knows them drop them.
        """
        for name, moment in (("since", since), ("until", until)):
            if isinstance(moment, dt.datetime) and moment.utcoffset() is None:
                raise InvalidSetting(setting=name, value=moment, allowed="an aware datetime, such as with tzinfo=UTC")
        now = await self._run(messages.now)
        after = now - since if isinstance(since, dt.timedelta) else since
        chosen = Selection(topic, key, after, now if until is None else min(until, now))
        replayed = await self._batches(lambda: self._run(messages.replay_unordered, self._table, chosen, BATCH))
        return replayed if self._keys is None else replayed + await self._replay_ordered(self._keys, chosen)

    async def redrive(self, *, topic: str | None = None, key: str | None = None, failed: bool = True) -> int:
        """Free blocked keys (unless `topic` is given), and with `failed` FAILED messages; how many of both."""
        freed = 0
        keys = self._keys
        if keys is not None and topic is None:
            freed += await self._batches(lambda: self._run(messages.redrive_blocked, self._table, keys, key, BATCH))
        if failed:
            chosen = Selection(topic, key)
            freed += await self._batches(lambda: self._run(messages.redrive_failed, self._table, chosen, BATCH))
        return freed

    async def _replay_ordered(self, keys: Table, chosen: Selection) -> int:
        total, after = 0, None
        while True:
            count, last = await self._replay_keys(keys, chosen, after)
            total += count
            if last is None:
                return total
            after = last

    async def _replay_keys(self, keys: Table, chosen: Selection, after: UUID | None) -> tuple[int, UUID | None]:
        return await self._run(messages.replay_ordered, self._table, keys, chosen, after, KEYS_AT_ONCE)

    async def _batches(self, one: Callable[[], Awaitable[int]]) -> int:
        total = 0
        while True:
            count = await one()
            total += count
            if count < BATCH:
                return total
