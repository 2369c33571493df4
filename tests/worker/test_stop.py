"""How a worker ends: nothing is lost, nothing is burned, whatever still runs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Any

import pytest
from sqlalchemy import Engine

from sa_taskqueue.context import TaskContext
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.models import Effect
from tests.support import eventually
from tests.worker.support import Database, running

pytestmark = pytest.mark.servers("sqlite", "postgresql")


def test_what_runs_may_finish_within_the_grace_time(engine: Engine, db: Database, queue: TaskQueue) -> None:
    started, go_on = threading.Event(), threading.Event()

    @queue.task
    def work() -> None:
        started.set()
        assert go_on.wait(60)

    task_id = db.put(work)
    worker = Worker(queue, engine, grace=60)
    with running(worker):
        assert started.wait(30)
        worker.stop()
        later = db.put(work)
        go_on.set()
    assert db.row(task_id).status == Status.COMPLETED
    assert db.row(later).status == Status.NEW


def test_what_waits_in_memory_is_given_back_unburned(engine: Engine, db: Database, queue: TaskQueue) -> None:
    started, go_on = threading.Event(), threading.Event()
    quick = threading.Semaphore(0)

    @queue.task
    def work(n: int) -> None:
        if n < 400:
            quick.release()
            return
        started.set()
        assert go_on.wait(60)

    ids = db.put_many(work, 900)
    worker = Worker(queue, engine, queues={"default": 1}, grace=60)
    with running(worker):
        assert started.wait(30)
        eventually(lambda: worker.counts.claimed > 401)
        worker.stop()
        eventually(lambda: worker.counts.released)
        go_on.set()
    rows = db.rows(ids[400:])
    assert rows[0].status == Status.COMPLETED
    assert {(row.status, row.attempt, row.reserved_by) for row in rows[1:]} == {(Status.NEW, 0, None)}
    assert worker.counts.claimed == worker.counts.completed + worker.counts.released


def test_after_the_grace_time_async_handlers_are_cancelled_and_given_back(
    worker_engine: Any, db: Database, queue: TaskQueue
) -> None:
    started, cancelled = threading.Event(), threading.Event()

    @queue.task
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task_id = db.put(work)
    worker = Worker(queue, worker_engine, grace=0)
    with running(worker):
        assert started.wait(30)
        worker.stop()
    row = db.row(task_id)
    assert cancelled.is_set()
    assert (row.status, row.attempt, worker.counts.released) == (Status.NEW, 0, 1)


def test_after_the_grace_time_sync_handlers_are_told_and_their_end_is_refused(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    started, left = threading.Event(), threading.Event()

    @queue.task
    def work(context: TaskContext) -> None:
        context.session.add(Effect(task_id=str(context.task.id)))
        started.set()
        assert context.lost.wait(60)
        left.set()

    task_id = db.put(work)
    worker = Worker(queue, engine, grace=0)
    with running(worker):
        assert started.wait(30)
        worker.stop()
    assert left.wait(30)
    row = db.row(task_id)
    assert (row.status, row.attempt, worker.counts.released) == (Status.NEW, 0, 1)
    assert db.effects() == []


def test_a_second_stop_ends_the_grace_time(engine: Engine, db: Database, queue: TaskQueue) -> None:
    started, never = threading.Event(), threading.Event()

    @queue.task
    def work(context: TaskContext) -> None:
        started.set()
        context.lost.wait(60)
        never.wait(0)

    db.put(work)
    worker = Worker(queue, engine, grace=3000)
    with running(worker):
        assert started.wait(30)
        worker.stop()
        worker.stop()
    assert worker.counts.released == 1


def test_a_stop_before_the_start_counts(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work() -> None: ...

    db.put(work)
    worker = Worker(queue, engine)
    worker.stop()
    with running(worker):
        pass
    assert db.statuses() == {Status.NEW: 1}


async def test_cancelling_serve_winds_down(engine: Engine, db: Database, queue: TaskQueue) -> None:
    started = asyncio.Event()

    @queue.task
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    task_id = db.put(work)
    serving = asyncio.create_task(Worker(queue, engine, grace=0).serve())
    await asyncio.wait_for(started.wait(), 30)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert (db.row(task_id).status, db.row(task_id).attempt) == (Status.NEW, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.servers("sqlite")
def test_a_signal_stops_the_worker_and_the_handlers_are_put_back(
    engine: Engine, db: Database, queue: TaskQueue, number: signal.Signals
) -> None:
    before = signal.getsignal(number)

    @queue.task
    def work() -> None:
        os.kill(os.getpid(), number)

    task_id = db.put(work)
    assert Worker(queue, engine).run() == 0
    assert db.row(task_id).status == Status.COMPLETED
    assert signal.getsignal(number) is before


@pytest.mark.servers("sqlite")
def test_nothing_is_left_held(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(n: int) -> None:
        time.perf_counter()

    db.put_many(work, 3000)
    worker = Worker(queue, engine)
    with running(worker):
        eventually(lambda: worker.counts.completed > 100)
        worker.stop()
    statuses = db.statuses()
    assert statuses.get(Status.RUNNING, 0) == 0
    assert statuses.get(Status.COMPLETED) == worker.counts.completed
