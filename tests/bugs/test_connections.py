"""What a worker does with connections: how many, in which state, and what when they are slow, cut or silent."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine, event, text
from sqlalchemy.orm import Session

from sa_taskqueue.context import TaskContext
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import fixed
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from sa_taskqueue.worker.held import HeldTask
from sa_taskqueue.worker.session_scope import WorkUnit
from tests.models import Effect, Order
from tests.support import eventually
from tests.tcp_proxy import TcpProxy
from tests.worker.support import Database, drain, running

POSTGRESQL = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
MYSQL = "processlist_db = DATABASE() AND processlist_id <> CONNECTION_ID()"
OPEN = {
    "postgresql": f"SELECT count(*) {POSTGRESQL} AND state LIKE 'idle in transaction%'",
    # Not innodb_trx: it shows the text of the statements, and fails (3854) on one with the bytes of an id in it.
    "mysql": "SELECT count(*) FROM performance_schema.events_transactions_current "
    f"JOIN performance_schema.threads USING (thread_id) WHERE state = 'ACTIVE' AND {MYSQL}",
    "mariadb": "SELECT count(*) FROM information_schema.innodb_trx JOIN information_schema.processlist AS p "
    "ON p.id = trx_mysql_thread_id WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()",
    "sqlite": "PRAGMA wal_checkpoint(TRUNCATE)",
}
CONNECTIONS = {
    "postgresql": f"SELECT count(*) {POSTGRESQL} AND backend_type = 'client backend'",
    "mysql": f"SELECT count(*) FROM performance_schema.threads WHERE {MYSQL}",
}


def ask(db: Database, questions: dict[str, str]) -> int:
    """The first column of the answer: a count, or for the checkpoint 1 while a reader is in its way."""
    name = "mariadb" if getattr(db.engine.dialect, "is_mariadb", False) else db.engine.dialect.name
    with db.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        return int(connection.execute(text(questions[name])).scalar_one())


def test_a_worker_without_work_is_in_no_transaction(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """sqlalchemy/sqlalchemy#5306, apache/airflow#1002: an idle poll must not hold a snapshot, nor a read lock."""
    ran = threading.Event()

    @queue.task
    def work() -> None:
        ran.set()

    worker = Worker(queue, engine, poll_min=0.01, poll_max=3000, lease=1)
    with running(worker):
        db.put(work)
        assert ran.wait(30)
        eventually(lambda: db.statuses() == {Status.COMPLETED: 1})
        # InnoDB's list of transactions is made anew only when nobody has read it for 0.1 s: look more rarely.
        eventually(lambda: threading.Event().wait(0.2) or ask(db, OPEN) == 0)
        worker.stop()


@pytest.mark.servers("mysql", "mariadb")
def test_a_worker_on_repeatable_read_sees_what_others_commit(url: URL, db: Database, queue: TaskQueue) -> None:
    """sqlalchemy/sqlalchemy#5306, cofin/litestar-queues#35: a poll that never ends its snapshot finds nothing new."""
    engine = create_engine(url, isolation_level="REPEATABLE READ")
    ran = threading.Semaphore(0)

    @queue.task
    def work(n: int) -> None:
        ran.release()

    worker = Worker(queue, engine, poll_max=0.2)
    with running(worker):
        for n in range(3):
            with db.engine.begin() as connection:  # past every wake-up
                values = {"id": work.new(n).id, "name": "work", "body": f'{{"n": {n}}}'}
                connection.execute(db.table.insert(), values)
            assert ran.acquire(timeout=30)
        worker.stop()
    engine.dispose()


@pytest.mark.servers("postgresql", "mysql")
def test_a_worker_opens_as_many_connections_as_said_and_closes_all(
    worker_engine: Any, db: Database, queue: TaskQueue
) -> None:
    """apache/airflow#1002: three lanes, the renewal, and one for each handler that uses its session."""
    concurrency = 5
    started, go_on = threading.Semaphore(0), threading.Event()

    @queue.task
    def work(context: TaskContext, n: int) -> None:
        context.session.get(Order, n)
        started.release()
        assert go_on.wait(60)

    @queue.task
    async def work_async(context: TaskContext, n: int) -> None:
        await context.session.get(Order, n)
        started.release()
        assert await asyncio.to_thread(go_on.wait, 60)

    before = ask(db, CONNECTIONS)
    db.put_many(work if isinstance(worker_engine, Engine) else work_async, 20)
    with running(Worker(queue, worker_engine, queues={"default": concurrency}, drain=True)):
        for _ in range(concurrency):
            assert started.acquire(timeout=30)
        assert ask(db, CONNECTIONS) <= before + 3 + 1 + concurrency
        go_on.set()
    assert db.statuses() == {Status.COMPLETED: 20}
    if isinstance(worker_engine, Engine):
        worker_engine.dispose()
        eventually(lambda: ask(db, CONNECTIONS) <= before)


@pytest.mark.servers("postgresql", "mysql", "sqlite")
def test_handlers_that_wait_for_a_small_pool_lose_no_attempt(url: URL, db: Database, queue: TaskQueue) -> None:
    """rails/solid_queue#333, que-rb/que#316: two connections for ten handlers make them slow, and nothing else."""
    engine = create_engine(url, pool_size=5, max_overflow=0, pool_timeout=60)

    @queue.task
    def work(context: TaskContext, n: int) -> None:
        context.session.add(Effect(task_id=str(context.task.id), note=f"{n:03}"))

    db.put_many(work, 100)
    worker = drain(Worker(queue, engine, queues={"default": 10}, drain=True, lease=4))
    engine.dispose()
    assert (worker.counts.completed, worker.counts.retried, worker.counts.lost) == (100, 0, 0)
    assert db.effects() == [f"{n:03}" for n in range(100)]


@pytest.fixture
def proxy(url: URL) -> Iterator[TcpProxy]:
    assert url.host is not None
    with TcpProxy(url.host, url.port or 5432) as proxy:
        yield proxy


@pytest.mark.servers("postgresql")
def test_a_worker_whose_network_is_silent_ends_when_told_to(
    url: URL, proxy: TcpProxy, db: Database, queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """procrastinate#1334, riverqueue/river#1251: a stop must not wait for a socket that will never answer."""
    monkeypatch.setattr("sa_taskqueue.worker.stop.FLUSH_PATIENCE", 0.5)
    started, go_on = threading.Event(), threading.Event()

    @queue.task
    def work() -> None:
        started.set()
        assert go_on.wait(60)

    engine = create_engine(url.set(host="127.0.0.1", port=proxy.port))
    task_id = db.put(work)
    worker = Worker(queue, engine, grace=1)
    with running(worker):
        assert started.wait(30)
        proxy.set_mode("blackhole")
        go_on.set()
        worker.stop()
    assert db.row(task_id).status == Status.RUNNING  # until its lease ends
    proxy.set_mode("cut")
    engine.dispose()


SLEEPS = {"postgresql": "SELECT pg_sleep(600)", "mysql": "SELECT SLEEP(600)"}


@pytest.mark.servers("postgresql", "mysql")
async def test_a_handler_cancelled_in_the_middle_of_a_statement_leaves_no_connection_behind(
    async_engine: Any, server: str, db: Database, queue: TaskQueue
) -> None:
    """sqlalchemy/sqlalchemy#8145, #12077: neither in a transaction on the server, nor broken in the pool."""
    before = ask(db, CONNECTIONS)

    @queue.task(timeout=0.2, retry=fixed(0, max_attempts=2))
    async def work(context: TaskContext, n: int) -> None:
        context.session.add(Effect(task_id=str(context.task.id)))
        await context.session.flush()
        await context.session.execute(text(SLEEPS[server]))

    @queue.task
    async def good(context: TaskContext, n: int) -> None:
        context.session.add(Effect(task_id=str(context.task.id), note="good"))

    hanging, others = db.put_many(work, 3), db.put_many(good, 6)
    await Worker(queue, async_engine, queues={"default": 3}, drain=True).serve()
    assert {(row.status, row.attempt) for row in db.rows(hanging)} == {(Status.FAILED, 2)}
    assert {row.status for row in db.rows(others)} == {Status.COMPLETED}
    assert db.effects() == ["good"] * 6
    assert async_engine.pool.checkedout() == 0
    await async_engine.dispose()
    left = len(hanging) if leaves_cancelled_open(async_engine) else 0
    eventually(lambda: ask(db, OPEN) == 0 and ask(db, CONNECTIONS) <= before + left)


def leaves_cancelled_open(engine: Any) -> bool:
    """SQLAlchemy 2.0.40 does not end asyncmy's connection when a statement on it was cancelled; 2.0.58 does."""
    if engine.dialect.driver != "asyncmy":
        return False
    from sqlalchemy.dialects.mysql import asyncmy

    return not hasattr(asyncmy.AsyncAdapt_asyncmy_connection, "_terminate_force_close")


@pytest.mark.servers("postgresql")
def test_a_transaction_the_server_ended_for_idling_runs_again_with_one_effect(
    url: URL, db: Database, queue: TaskQueue
) -> None:
    """PrairieLearn/PrairieLearn#4913: a handler that thinks for long loses its transaction, not its task."""
    engine = create_engine(url, connect_args={"options": "-c idle_in_transaction_session_timeout=100"})
    attempts: list[int] = []

    @queue.task(retry=fixed(0))
    def work(context: TaskContext) -> None:
        attempts.append(context.attempt)
        context.session.add(Effect(task_id=str(context.task.id), note="once"))
        context.session.flush()
        if context.attempt == 1:
            pid = context.session.scalar(text("SELECT pg_backend_pid()"))
            ended = text("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = :pid")
            with db.engine.connect() as connection:
                eventually(lambda: connection.scalar(ended, {"pid": pid}) or connection.rollback())

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    engine.dispose()
    assert (db.row(task_id).status, attempts, db.effects()) == (Status.COMPLETED, [1, 2], ["once"])


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_no_statement_of_the_library_changes_the_schema(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """celery/kombu#1187, apscheduler#499: what never creates tables cannot race for them, and needs no such right."""
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: sent.append(args[2].lstrip().upper()))

    @queue.task
    def work(context: TaskContext) -> None:
        context.session.add(Effect(task_id=str(context.task.id)))

    with TaskSession(engine) as session, session.begin():
        session.enqueue(work)
        session.enqueue(work.using(unique_key="k"))
        session.enqueue_many(work, [{}] * 60)
    drain(Worker(queue, engine, drain=True))
    assert sent
    assert [each for each in sent if each.startswith(("CREATE", "ALTER", "DROP", "TRUNCATE"))] == []


@pytest.mark.servers("sqlite", "postgresql")
def test_sessions_and_units_of_work_end_with_their_tasks(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """celery/celery#430, procrastinate#1316: nothing is kept per task, so that memory does not grow with them."""

    @queue.task
    def work(context: TaskContext, n: int) -> None:
        context.session.get(Order, n)
        if n % 10 == 0:
            raise ValueError("one in ten")

    def alive() -> list[object]:
        gc.collect()
        return [one for one in gc.get_objects() if isinstance(one, Session | WorkUnit | HeldTask)]

    before = len(alive())
    db.put_many(work, 100)
    worker = drain(Worker(queue, engine, drain=True))
    assert worker.counts.completed == 90
    assert len(alive()) <= before
