"""A task has one holder, whatever the database can do, and a queue cannot keep another one waiting."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Dialect, Engine
from sqlalchemy.dialects import mssql, mysql, sqlite
from sqlalchemy.sql import ClauseElement

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.adapters.shapes import CompareAndSet, ReturningClaim
from sa_taskqueue.context import TaskContext
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import Status
from sa_taskqueue.store import TaskStore
from sa_taskqueue.worker import Worker
from tests.models import Task
from tests.worker.support import Database, drain


def _old_mysql() -> Dialect:
    dialect = mysql.dialect()
    dialect.server_version_info = (5, 7, 44)
    return dialect


@pytest.mark.parametrize(
    "dialect",
    [mssql.dialect(), sqlite.dialect(), _old_mysql()],
    ids=["mssql", "sqlite", "5.7"],
)
def test_a_claim_without_locks_of_rows_is_guarded_by_the_epoch(dialect: Dialect) -> None:
    """dbos-transact-py#541, celery/kombu#1221, rebus-org/Rebus.SqlServer#35, codeigniter4/queue#39: SQLAlchemy drops
    FOR UPDATE SKIP LOCKED here without a word, or an old server refuses it; nothing may rest on it."""
    store = TaskStore(Task.metadata.tables["task"], adapter_for(dialect))
    for shape in (store._claims._shape, store._leases._lapsed, store._promotion._shape):
        assert isinstance(shape, CompareAndSet | ReturningClaim)
        parts: list[ClauseElement] = (
            [shape.candidates, shape.change] if isinstance(shape, CompareAndSet) else [shape.statement]
        )
        sql = [str(part.compile(dialect=dialect)) for part in parts]
        assert not [part for part in sql if "FOR UPDATE" in part or "SKIP LOCKED" in part]
        if isinstance(shape, CompareAndSet):
            guard = sql[1][sql[1].index("WHERE") :]
            assert "epoch =" in guard
            assert "status =" in guard
            assert "_at" not in guard
            assert "reserved_until" not in guard


@pytest.mark.servers("sqlite", "postgresql")
def test_a_saturated_queue_keeps_no_other_queue_waiting(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """timgit/pg-boss 6e2fed1, janbjorge/pgqueuer#684: a thousand rows of a full queue hide nothing behind them."""
    others_done = threading.Event()
    left = threading.Semaphore(0)

    @queue.task(queue="full", priority=-100)
    def slow(n: int) -> None:
        assert others_done.wait(60)

    @queue.task(queue="free", priority=100)
    def quick(n: int) -> None:
        left.release()
        if n == 49:
            others_done.set()

    db.put_many(slow, 1000)
    db.put_many(quick, 50)
    worker = drain(Worker(queue, engine, queues={"full": 1, "free": 1}, drain=True))
    assert others_done.is_set()
    assert worker.counts.completed == 1050


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_a_draining_worker_runs_what_its_tasks_enqueue(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """janbjorge/pgqueuer#631: a count taken before must not end the drain while a task has just stored another."""
    ran: list[int] = []

    @queue.task
    def work(context: TaskContext, n: int) -> None:
        ran.append(n)
        if n:
            context.session.enqueue(work, n - 1)

    db.put(work, 15)
    drain(Worker(queue, engine, drain=True))
    assert ran == list(range(15, -1, -1))
    assert db.statuses() == {Status.COMPLETED: 16}


@pytest.mark.servers("sqlite", "postgresql", "mysql", "mariadb")
def test_workers_that_start_together_share_the_tasks(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """collectiveidea/delayed_job_active_record#143, Koed00/django-q#213: each task once, and none left over."""
    ran: list[int] = []

    @queue.task
    def work(n: int) -> None:
        ran.append(n)

    db.put_many(work, 600)
    workers = [Worker(queue, engine, queues={"default": 2}, drain=True, batch=7) for _ in range(3)]
    threads = [threading.Thread(target=drain, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(ran) == list(range(600))
    assert db.statuses() == {Status.COMPLETED: 600}
    assert [worker.counts.lost for worker in workers] == [0, 0, 0]
