"""`Control`: an operator's hands on one queue."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Engine, Table

from sa_taskqueue.control.base import BATCH, Hands
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import TERMINAL, Status
from sa_taskqueue.store import control as tasks
from sa_taskqueue.store.control import ALL, REVIVABLE, WAITING, Choice, Retried, TaskRow
from sa_taskqueue.store.drift import check_schema
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.inbox import prune_inbox
from sa_taskqueue.store.pruning import prune
from sa_taskqueue.store.stats import QueueStatistics, statistics

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class Check(NamedTuple):
    """What was compared and found right."""

    table: str
    database: str
    adapter: str


class Control(Hands):
    """Looks at the tasks of one queue and changes them, over an Engine or an AsyncEngine: `async with Control(...)`.

    Each change is committed in batches and raises the epoch: whoever held the task before cannot finish it.
    """

    def __init__(self, queue: TaskQueue, engine: Engine | AsyncEngine) -> None:
        super().__init__(queue.table, engine)
        self._queue = queue

    async def list_tasks(
        self,
        choice: Choice = ALL,
        *,
        statuses: Collection[Status] = (),
        before: uuid.UUID | None = None,
        limit: int = 50,
    ) -> list[TaskRow]:
        """Up to `limit` tasks, the newest first; `before` is the last id of the page before. No statuses: all."""
        return await self._run(tasks.list_tasks, self._table, choice, statuses=statuses, before=before, limit=limit)

    async def get(self, task_id: uuid.UUID) -> TaskRow | None:
        """The task of that id, None when there is none (any more)."""
        return await self._run(tasks.get, self._table, task_id)

    async def statistics(self) -> list[QueueStatistics]:
        """The counts and ages of each queue."""
        return await self._run(statistics, self._table)

    async def check(self) -> Check:
        """Compare the database with the model; raises the error that names the first difference."""
        for table in self._queue.tables:
            await self._run(check_schema, table)
        database = self._portal.sync_engine.url.render_as_string(hide_password=True)
        return Check(self._table.fullname, database, self._portal.adapter.name)

    async def retry(self, choice: Choice) -> Retried:
        """Run FAILED and CANCELLED tasks again, attempts and crashes counted from 0; other tasks are left alone.

        A task with a unique key takes it again; where another task holds the key now, the id is among the conflicts.
        """
        retried = Retried([], [])
        async for ids in self._batches(choice, REVIVABLE):
            some = await self._run(tasks.retry, self._table, ids)
            retried = Retried(retried.ids + some.ids, retried.conflicts + some.conflicts)
        return retried

    async def cancel(self, choice: Choice, *, running: bool = False) -> list[uuid.UUID]:
        """Cancel waiting tasks, and with `running` those a worker holds: it is told, and its finish is refused."""
        statuses = WAITING | {Status.RUNNING} if running else WAITING
        cancelled: list[uuid.UUID] = []
        async for ids in self._batches(choice, statuses):
            cancelled += await self._run(tasks.cancel, self._table, ids, running=running)
        return cancelled

    async def prune(self, statuses: Iterable[Status] = (), *, older_than: timedelta | None = None) -> int:
        """Delete tasks that ended longer ago than `older_than`, else than the queue's retention; how many.

        No statuses: each terminal one, and what the inbox has kept for longer than its own retention.
        """
        deleted = 0
        for status in sorted(statuses or TERMINAL):
            if status not in TERMINAL:
                raise InvalidSetting(setting="status", value=status, allowed="COMPLETED, FAILED or CANCELLED")
            kept = self._queue.retention[Status(status)] if older_than is None else older_than
            deleted += await self._prune(prune, self._table, Status(status), kept)
        if not statuses and self._queue.inbox is not None:
            kept = self._queue.inbox_retention if older_than is None else older_than
            deleted += await self._prune(prune_inbox, self._queue.inbox_table, kept)
        return deleted

    async def _prune(self, batches: Callable[..., int], table: Table, *which: object) -> int:
        deleted = 0
        while True:
            with named_errors(table, self._portal.sync_engine):
                batch = await self._open.run_repeatable(batches, table, *which, BATCH)
            deleted += batch
            if batch < BATCH:
                return deleted

    async def _batches(self, choice: Choice, statuses: Collection[Status]) -> AsyncIterator[list[uuid.UUID]]:
        after = None
        while True:
            ids = await self._run(tasks.find, self._table, choice, statuses, after=after, limit=BATCH)
            if ids:
                yield ids
                after = ids[-1]
            if len(ids) < BATCH:
                return
