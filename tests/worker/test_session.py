"""A handler's session: its work and the completion are one commit, or neither is."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from sqlalchemy import Engine

from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import LeaseLost
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Cancel, Fail, Retry, Snooze, Status
from sa_taskqueue.worker import Worker
from tests.models import Effect
from tests.support import eventually
from tests.worker.support import Database, drain, running


def effect(context: TaskContext, note: str) -> Effect:
    return Effect(task_id=str(context.task.id), note=note)


def test_effect_and_completion_are_one_commit(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(context: TaskContext, n: int) -> None:
        context.session.add(effect(context, str(n)))

    db.put_many(work, 30)
    worker = drain(Worker(queue, engine, drain=True))
    assert db.effects() == sorted(str(n) for n in range(30))
    assert db.statuses() == {Status.COMPLETED: 30}
    assert worker.counts.completed == 30


def test_an_async_handler_has_an_async_session(async_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task
    async def work(context: TaskContext, n: int) -> None:
        context.async_session.add(effect(context, str(n)))
        await context.async_session.flush()

    db.put_many(work, 30)
    worker = drain(Worker(queue, async_engine, drain=True))
    assert db.effects() == sorted(str(n) for n in range(30))
    assert worker.counts.completed == 30


def test_an_exception_rolls_the_work_back(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=never)
    def work(context: TaskContext) -> None:
        context.session.add(effect(context, "lost"))
        context.session.commit()
        raise ValueError("after the commit")

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert db.effects() == []
    row = db.row(task_id)
    assert (row.status, json.loads(row.error)["message"]) == (Status.FAILED, "after the commit")


def test_an_async_exception_rolls_the_work_back(async_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=never)
    async def work(context: TaskContext) -> None:
        context.async_session.add(effect(context, "lost"))
        await context.async_session.commit()
        raise ValueError("after the commit")

    db.put(work)
    drain(Worker(queue, async_engine, drain=True))
    assert db.effects() == []
    assert db.statuses() == {Status.FAILED: 1}


def test_commit_and_rollback_in_the_handler_move_savepoints(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(context: TaskContext) -> None:
        session = context.session
        session.add(effect(context, "first"))
        session.commit()
        session.add(effect(context, "dropped"))
        session.rollback()
        with session.begin_nested():
            session.add(effect(context, "nested"))
        session.commit()
        session.add(effect(context, "last"))

    db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert db.effects() == ["first", "last", "nested"]


def test_a_lost_lease_rolls_the_work_back(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(context: TaskContext) -> None:
        db.raise_epoch(context.task.id)
        context.session.add(effect(context, "never"))
        context.session.commit()

    task_id = db.put(work)
    worker = drain(Worker(queue, engine, drain=True))
    assert db.effects() == []
    assert db.row(task_id).status == Status.RUNNING
    assert (worker.counts.lost, worker.counts.completed) == (1, 0)


def test_a_lost_lease_rolls_async_work_back(async_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task
    async def work(context: TaskContext) -> None:
        await asyncio.to_thread(db.raise_epoch, context.task.id)
        context.async_session.add(effect(context, "never"))
        await context.async_session.commit()

    task_id = db.put(work)
    worker = drain(Worker(queue, async_engine, drain=True))
    assert db.effects() == []
    assert db.row(task_id).status == Status.RUNNING
    assert worker.counts.lost == 1


@pytest.mark.parametrize(
    ("outcome", "status", "kept"),
    [
        (Snooze(3600), Status.SCHEDULED, True),
        (Cancel("not needed"), Status.CANCELLED, True),
        (Fail("for good"), Status.FAILED, False),
        (Retry(3600), Status.SCHEDULED, False),
    ],
)
@pytest.mark.servers("sqlite", "postgresql")
def test_snooze_and_cancel_keep_the_work_fail_and_retry_do_not(
    engine: Engine, db: Database, queue: TaskQueue, outcome: Exception, status: Status, kept: bool
) -> None:
    @queue.task
    def work(context: TaskContext) -> None:
        context.session.add(effect(context, "work"))
        context.session.flush()
        raise outcome

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert db.row(task_id).status == status
    assert db.effects() == (["work"] if kept else [])


@pytest.mark.servers("sqlite", "postgresql")
def test_a_last_flush_that_fails_is_the_handlers_failure(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=fixed(3600))
    def work(context: TaskContext) -> None:
        context.session.add(effect(context, "first"))
        context.session.flush()
        context.session.add(Effect(id=1_000_000_000_000_000_000_000, task_id="x"))  # no database holds that number

    task_id = db.put(work)
    worker = drain(Worker(queue, engine, drain=True))
    assert (db.row(task_id).status, worker.counts.retried) == (Status.SCHEDULED, 1)
    assert db.effects() == []


@pytest.mark.servers("sqlite", "postgresql")
def test_a_handler_may_enqueue_in_its_transaction(engine: Engine, db: Database, queue: TaskQueue) -> None:
    ran = threading.Event()

    @queue.task
    def second() -> None:
        ran.set()

    @queue.task
    def first(context: TaskContext) -> None:
        context.session.enqueue(second)  # type: ignore[attr-defined]

    db.put(first)
    worker = Worker(queue, engine, poll_min=3000, poll_max=3000)
    with running(worker):
        # Only the wake-up after the worker's own COMMIT can end the sleep.
        assert ran.wait(30)
        eventually(lambda: db.statuses() == {Status.COMPLETED: 2})
        worker.stop()


@pytest.mark.servers("sqlite", "postgresql")
def test_a_session_that_is_not_used_costs_no_transaction_of_its_own(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    @queue.task
    def work(context: TaskContext, n: int) -> None:
        assert context.session is context.session

    db.put_many(work, 5)
    worker = drain(Worker(queue, engine, drain=True))
    assert worker.counts.completed == 5


@pytest.mark.servers("sqlite", "postgresql")
def test_a_handler_gets_a_session_of_its_engines_kind_only(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=never)
    async def work(context: TaskContext) -> None:
        await asyncio.sleep(0)
        assert context.session

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert "AsyncEngine" in json.loads(db.row(task_id).error)["message"]


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_handlers_transaction_is_read_committed(engine: Engine, db: Database, queue: TaskQueue) -> None:
    levels: list[str] = []

    @queue.task
    def work(context: TaskContext) -> None:
        levels.append(context.session.connection().get_isolation_level())

    db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert levels == ["READ COMMITTED"]


@pytest.mark.servers("sqlite")
def test_sqlite_handlers_that_write_run_one_at_a_time(engine: Engine, db: Database, queue: TaskQueue) -> None:
    inside = threading.Lock()
    entered: list[int] = []

    @queue.task
    def work(context: TaskContext, n: int) -> None:
        context.session.add(effect(context, str(n)))
        context.session.flush()
        assert inside.acquire(blocking=False)
        entered.append(n)
        inside.release()

    db.put_many(work, 40)
    worker = drain(Worker(queue, engine, drain=True))
    assert worker.counts.completed == 40
    assert sorted(entered) == list(range(40))


@pytest.mark.servers("sqlite", "postgresql")
def test_extend_of_a_lost_task_says_so(engine: Engine, db: Database, queue: TaskQueue) -> None:
    told: list[BaseException] = []

    @queue.task
    def work(context: TaskContext) -> None:
        context.extend(120)
        assert db.row(context.task.id).reserved_until is not None
        db.raise_epoch(context.task.id)
        try:
            context.extend(120)
        except LeaseLost as error:
            told.append(error)
            assert context.lost.is_set()

    db.put(work)
    worker = drain(Worker(queue, engine, drain=True))
    assert len(told) == worker.counts.lost == 1


@pytest.mark.servers("sqlite", "postgresql")
def test_extend_of_an_async_handler(async_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task
    async def work(context: TaskContext) -> None:
        # In a thread: on SQLite a read waits for the worker's own transactions, which need the loop to end.
        before = await asyncio.to_thread(db.row, context.task.id)
        await context.aextend(3600)
        after = await asyncio.to_thread(db.row, context.task.id)
        assert (after.reserved_until - before.reserved_until).total_seconds() > 3000

    db.put(work)
    worker = drain(Worker(queue, async_engine, drain=True))
    assert worker.counts.completed == 1


@pytest.mark.servers("sqlite", "postgresql")
def test_extend_that_would_block_the_loop_is_refused(async_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=never)
    async def work(context: TaskContext) -> None:
        context.extend(60)

    task_id = db.put(work)
    drain(Worker(queue, async_engine, drain=True))
    row = db.row(task_id)
    assert row.status == Status.FAILED
    assert "await context.aextend" in json.loads(row.error)["message"]
