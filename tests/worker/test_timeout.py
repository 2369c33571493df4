"""Handlers that run longer than their timeout: async ones are cancelled, sync ones abandoned."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from sqlalchemy import Engine

from sa_taskqueue.context import TaskContext
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Status
from sa_taskqueue.worker import RECYCLE, Worker
from tests.models import Effect
from tests.worker.support import Database, drain

pytestmark = pytest.mark.servers("sqlite", "postgresql")


def test_an_async_handler_is_cancelled(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    cancelled: list[str] = []

    @queue.task(timeout=0.05, retry=never)
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("cancelled")
            raise

    task_id = db.put(work)
    drain(Worker(queue, worker_engine, drain=True))
    row = db.row(task_id)
    assert (row.status, json.loads(row.error)["code"]) == (Status.FAILED, "timeout")
    assert cancelled == ["cancelled"]


def test_the_handlers_own_timeout_error_is_an_ordinary_error(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task(timeout=60, retry=never)
    async def work() -> None:
        raise TimeoutError("of its own")

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert json.loads(db.row(task_id).error)["code"] == "error"


def test_a_sync_handler_is_told_and_its_end_and_work_are_refused(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    told, left = threading.Event(), threading.Event()

    @queue.task(timeout=0.05, retry=never)
    def work(context: TaskContext) -> None:
        context.session.add(Effect(task_id=str(context.task.id)))
        context.session.flush()
        if context.lost.wait(60):
            told.set()
        context.session.commit()
        left.set()

    task_id = db.put(work)
    worker = drain(Worker(queue, engine, drain=True))
    row = db.row(task_id)
    assert (row.status, json.loads(row.error)["code"]) == (Status.FAILED, "timeout")
    assert left.wait(30)
    assert told.is_set()
    assert (worker.counts.abandoned, worker.counts.completed, worker.exit_code) == (1, 0, 0)
    assert db.effects() == []


def test_the_slot_of_an_abandoned_thread_is_free(engine: Engine, db: Database, queue: TaskQueue) -> None:
    release = threading.Event()

    @queue.task(timeout=0.05, retry=never)
    def hangs() -> None:
        release.wait(60)

    @queue.task
    def quick() -> None: ...

    db.put(hangs)
    quick_id = db.put(quick)
    drain(Worker(queue, engine, queues={"default": 1}, drain=True))
    release.set()
    assert db.row(quick_id).status == Status.COMPLETED


def test_a_timeout_is_retried_by_the_policy(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task(timeout=0.1, retry=fixed(0))
    async def work(context: TaskContext) -> None:
        if context.attempt == 1:
            await asyncio.Event().wait()

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert (db.row(task_id).status, db.row(task_id).attempt) == (Status.COMPLETED, 2)


def test_too_many_hanging_threads_end_the_worker_with_a_code_of_its_own(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    release = threading.Event()

    @queue.task(timeout=0.05, retry=fixed(3600))
    def hangs(n: int) -> None:
        release.wait(60)

    db.put_many(hangs, 5)
    worker = Worker(queue, engine, queues={"default": 1}, max_abandoned=2, grace=0)
    assert worker.run() == RECYCLE
    release.set()
    assert worker.counts.abandoned >= 3
    assert db.statuses().get(Status.RUNNING, 0) == 0


def test_a_worker_that_recycles_lets_other_handlers_finish_within_the_grace_time(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    release, interrupted = threading.Event(), threading.Event()

    @queue.task(timeout=0.05, retry=fixed(3600))
    def hangs() -> None:
        release.wait(60)

    @queue.task
    def patient(context: TaskContext) -> None:
        if context.lost.wait(1):
            interrupted.set()

    patient_id = db.put(patient)
    db.put(hangs)
    worker = Worker(queue, engine, queues={"default": 2}, max_abandoned=0, grace=60)
    assert worker.run() == RECYCLE
    release.set()
    assert not interrupted.is_set()
    assert db.row(patient_id).status == Status.COMPLETED
