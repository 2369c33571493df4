from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, update
from sqlalchemy.exc import OperationalError

from sa_taskqueue import telemetry
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.states import Status
from sa_taskqueue.store import TaskStore
from sa_taskqueue.worker import maintenance as module
from sa_taskqueue.worker.maintenance import Maintenance
from tests.support import TIMEOUT, eventually
from tests.worker.support import Database

DAY = timedelta(days=1)
RETENTION: Mapping[Status, timedelta] = {Status.COMPLETED: DAY, Status.FAILED: 30 * DAY}


class Scene:
    """A maintenance over the engine, and tasks to look after."""

    def __init__(self, db: Database, queue: TaskQueue, portal: Portal) -> None:
        @queue.task
        def work(n: int) -> None:
            """Never run here."""

        self.db, self.work = db, work
        self.store = TaskStore(db.table, portal.adapter)
        self.lane = portal.lane("maintenance")
        self.due = 0
        self.maintenance = self.make()

    def make(self, lease: float = 60.0) -> Maintenance:
        def on_due() -> None:
            self.due += 1

        return Maintenance(self.lane, self.store, lease=lease, max_crashes=2, retention=RETENTION, on_due=on_due)

    async def claim(self, lease: float) -> list[UUID]:
        def operation(connection: Connection) -> list[UUID]:
            return [task.id for task in self.store.claim(connection, "default", 100, lease=lease, by="test")]

        return await self.lane.run(operation)

    async def claim_and_lose(self) -> list[UUID]:
        """Claim, and let the lease end."""
        ids = await self.claim(1.0)

        def end(connection: Connection) -> None:
            past = self.store.adapter.ago(1.0)
            connection.execute(update(self.db.table).values(reserved_until=past))

        await self.lane.run(end)
        return ids

    def status(self, task_id: UUID) -> str:
        return str(self.db.row(task_id).status)


@pytest.fixture
async def scene(db: Database, queue: TaskQueue, worker_engine: Any) -> AsyncIterator[Scene]:
    portal = Portal(worker_engine)
    await portal.start()
    yield Scene(db, queue, portal)
    await portal.aclose()


async def test_a_lost_task_is_free_again_and_claimed_at_once(scene: Scene) -> None:
    task_id = scene.db.put(scene.work, n=1)
    await scene.claim_and_lose()
    assert await scene.maintenance.take_over() == (1, 0)
    assert scene.status(task_id) == "NEW"
    assert scene.due == 1
    assert await scene.claim(60.0) == [task_id]


async def test_a_task_still_reserved_is_left_alone(scene: Scene) -> None:
    task_id = scene.db.put(scene.work, n=1)
    await scene.claim(60.0)
    assert await scene.maintenance.take_over() == (0, 0)
    assert scene.status(task_id) == "RUNNING"
    assert scene.due == 0


async def test_a_task_that_crashed_too_often_fails(scene: Scene) -> None:
    task_id = scene.db.put(scene.work, n=1)
    events: list[telemetry.Event] = []
    unsubscribe = telemetry.subscribe(events.append)
    outcomes = []
    for _ in range(2):
        await scene.claim_and_lose()
        outcomes.append(await scene.maintenance.take_over())
    unsubscribe()
    assert outcomes == [(1, 0), (0, 1)]
    assert scene.status(task_id) == "FAILED"
    assert telemetry.TasksTakenOver(0, 1) in events


async def test_take_over_and_promotion_go_on_while_batches_are_full(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    scene.db.put_many(scene.work, 5)
    assert len(await scene.claim_and_lose()) == 5
    assert await scene.maintenance.take_over() == (5, 0)
    await scene.lane.run(lambda connection: connection.execute(_as_scheduled(scene)).rowcount)
    assert await scene.maintenance.promote() is None
    assert scene.db.statuses() == {Status.NEW: 5}


async def test_promotion_frees_what_is_due_and_tells_when_the_next_is(scene: Scene) -> None:
    due = scene.db.put(scene.work, n=1)
    await scene.lane.run(lambda connection: connection.execute(_as_scheduled(scene)).rowcount)
    later = scene.db.put(scene.work.using(run_after=timedelta(hours=1)), n=2)
    next_due = await scene.maintenance.promote()
    assert (scene.status(due), scene.status(later)) == ("NEW", "SCHEDULED")
    assert next_due is not None
    assert 3000 < next_due <= 3600
    assert scene.due == 1


async def test_pruning_deletes_only_what_its_retention_has_passed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    ids = {(status, days): scene.db.put(scene.work, n=1) for status, days in KEPT | GONE}
    gone = [scene.db.put(scene.work, n=2) for _ in range(5)]

    def finish(connection: Connection) -> None:
        for (status, days), task_id in ids.items():
            _finished(scene, connection, task_id, status, days)
        for task_id in gone:
            _finished(scene, connection, task_id, Status.COMPLETED, 2)

    await scene.lane.run(finish)
    assert await scene.maintenance.prune() == len(GONE) + len(gone)
    assert scene.db.statuses() == {Status.COMPLETED: 1, Status.FAILED: 1, Status.CANCELLED: 1}


KEPT = {(Status.COMPLETED, 0.5), (Status.FAILED, 2.0), (Status.CANCELLED, 99.0)}
GONE = {(Status.COMPLETED, 1.5), (Status.FAILED, 31.0)}


async def test_running_it_promotes_takes_over_on_demand_and_survives_a_failure(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKE_OVER_SPACING", 0.01)
    monkeypatch.setattr(module, "LONGEST_SLEEP", 0.05)
    failures = [OperationalError("promote", {}, Exception("out of memory"))]
    promote = scene.store.promote

    def failing_once(connection: Connection, limit: int) -> int:
        if failures:
            raise failures.pop()
        return promote(connection, limit)

    monkeypatch.setattr(scene.store, "promote", failing_once)
    scheduled = scene.db.put(scene.work.using(run_after=timedelta(seconds=0.2)), n=1)
    maintenance = scene.make()

    loop = asyncio.get_running_loop()

    def is_free() -> bool:
        loop.call_soon_threadsafe(maintenance.claim_was_empty)
        return scene.status(scheduled) == "NEW"

    running = asyncio.ensure_future(maintenance.run())
    # In a thread, because on SQLite the look may have to wait for a transaction of this loop's.
    await asyncio.to_thread(eventually, is_free)
    await scene.claim_and_lose()
    await asyncio.to_thread(eventually, is_free)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_the_looks_become_rare_while_another_worker_promotes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def another_one_does() -> float:
        return -1.0

    pauses: list[float] = []
    looked = asyncio.Event()

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            looked.set()
            await asyncio.Event().wait()

    maintenance = scene.make()
    monkeypatch.setattr(maintenance, "promote", another_one_does)
    monkeypatch.setattr(module, "asyncio", SleepsBy(note))
    running = asyncio.ensure_future(maintenance._forever("promotion", maintenance._promote_turn))
    await asyncio.wait_for(looked.wait(), TIMEOUT)
    running.cancel()

    assert pauses[0] < 0.1
    assert min(pauses[8:]) > 0.5


class SleepsBy:
    """The part of asyncio that a turn uses, with another sleep."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep = sleep


def _as_scheduled(scene: Scene) -> Any:
    clock = scene.store.adapter.ago(1.0)
    return update(scene.db.table).values(status=Status.SCHEDULED, scheduled_at=clock)


def _finished(scene: Scene, connection: Connection, task_id: UUID, status: Status, days: float) -> None:
    table = scene.db.table
    ended = scene.store.adapter.ago(days * 86_400)
    connection.execute(update(table).where(table.c.id == task_id).values(status=status, finished_at=ended))
