"""What a worker does when a task is no longer its own."""

from __future__ import annotations

import asyncio
import threading

import pytest
from sqlalchemy import Engine

from sa_taskqueue.context import TaskContext
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import fixed
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.support import eventually
from tests.worker.support import Database, drain, running


@pytest.mark.parametrize("fails", [False, True], ids=["completes", "fails"])
def test_a_stale_end_is_refused_and_counted(engine: Engine, db: Database, queue: TaskQueue, fails: bool) -> None:
    @queue.task(retry=fixed(0))
    def work(context: TaskContext) -> None:
        db.raise_epoch(context.task.id)
        if fails:
            raise ValueError("too late as well")

    @queue.task
    def other() -> None: ...

    task_id, other_id = db.put(work), db.put(other)
    worker = drain(Worker(queue, engine, drain=True))
    assert db.row(task_id).status == Status.RUNNING
    assert db.row(task_id).error is None
    assert db.row(other_id).status == Status.COMPLETED
    assert worker.counts.lost == 1


@pytest.mark.servers("sqlite", "postgresql")
def test_the_renewal_notices_a_lost_lease_and_tells_the_handlers(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    told = threading.Event()
    cancelled = threading.Event()

    @queue.task
    def in_thread(context: TaskContext) -> None:
        db.raise_epoch(context.task.id)
        if context.lost.wait(60):
            told.set()

    @queue.task
    async def on_loop(context: TaskContext) -> None:
        await asyncio.to_thread(db.raise_epoch, context.task.id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    db.put(in_thread)
    db.put(on_loop)
    worker = drain(Worker(queue, engine, drain=True, lease=2))
    assert told.is_set()
    assert cancelled.is_set()
    assert worker.counts.lost == 2
    assert worker.counts.ended == 0


@pytest.mark.servers("sqlite", "postgresql")
def test_tasks_that_wait_behind_a_long_one_are_renewed(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """The lease would be over twice before the last task starts; none is lost, none runs twice."""
    ran: list[int] = []
    nobody = threading.Event()

    @queue.task
    def work(n: int) -> None:
        ran.append(n)
        if n == 300:
            nobody.wait(8)

    db.put_many(work, 400)
    worker = drain(Worker(queue, engine, queues={"default": 1}, drain=True, lease=4))
    assert sorted(ran) == list(range(400))
    assert (worker.counts.completed, worker.counts.lost) == (400, 0)


@pytest.mark.servers("sqlite", "postgresql")
def test_what_a_dead_worker_held_runs_again(engine: Engine, db: Database, queue: TaskQueue) -> None:
    ran = threading.Event()

    @queue.task
    def work(context: TaskContext) -> None:
        if context.task.crashes:
            ran.set()

    task_id = db.put(work)
    with db.engine.begin() as connection:
        connection.execute(
            db.table.update().values(
                status=Status.RUNNING, epoch=1, attempt=1, reserved_until=db.table.c.created_at, reserved_by="dead"
            )
        )
    worker = Worker(queue, engine)
    with running(worker):
        assert ran.wait(30)
        eventually(lambda: worker.counts.completed == 1)
        worker.stop()
    row = db.row(task_id)
    assert (row.status, row.crashes, row.attempt) == (Status.COMPLETED, 1, 2)
