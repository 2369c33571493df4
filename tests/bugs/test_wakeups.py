"""A wake-up is a hint: it comes after the commit, costs little, fails nothing, and nothing depends on it."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, event, insert

from sa_taskqueue.context import TaskContext
from sa_taskqueue.ids import new_id
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.runtime import wakeups
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.models import Order, Task
from tests.worker.support import Database, running


@pytest.fixture
def announcing() -> TaskQueue:
    """A queue that sends NOTIFY in the transaction."""
    return TaskQueue(Task, notify=True)


@pytest.fixture
def announced(engine: Engine) -> list[str]:
    """The statements with NOTIFY sent by the engine so far."""
    sent: list[str] = []

    def look(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "pg_notify" in statement:
            sent.append(statement)

    event.listen(engine, "before_cursor_execute", look)
    return sent


@pytest.mark.servers("postgresql")
def test_a_queue_is_announced_once_in_a_transaction(
    engine: Engine, db: Database, announcing: TaskQueue, announced: list[str]
) -> None:
    """graphprotocol/graph-node#1266: equal notifications are folded at delivery; each statement more is waste."""

    @announcing.task(queue="a")
    def one(n: int) -> None: ...

    @announcing.task(queue="b")
    def two(n: int) -> None: ...

    with TaskSession(engine) as session, session.begin():
        for n in range(20):
            session.enqueue(one, n)
            session.enqueue(two, n)
            session.flush()
        session.enqueue_many(one, [{"n": n} for n in range(5000)])
    assert len(announced) == 2
    assert db.statuses() == {Status.NEW: 5040}


@pytest.mark.servers("postgresql")
def test_a_notification_fits_whatever_the_queue_is_called(engine: Engine, db: Database, announcing: TaskQueue) -> None:
    """ansible/awx#12999: a payload or a channel that is too long would take the caller's transaction down."""

    @announcing.task
    def work(n: int) -> None: ...

    with TaskSession(engine) as session, session.begin():
        for n in range(50):
            session.enqueue(work.using(queue=f"{n:02}".ljust(64, "q")), n)
    assert db.statuses() == {Status.NEW: 50}


@pytest.mark.servers("postgresql")
def test_a_savepoint_rolled_back_suppresses_no_announcement(
    engine: Engine, announcing: TaskQueue, db: Database, announced: list[str]
) -> None:
    """faststream-outbox#135: what was announced in a savepoint alone went with it."""

    @announcing.task
    def work(n: int) -> None: ...

    with TaskSession(engine) as session, session.begin():
        with session.begin_nested() as lost:
            session.enqueue(work, 1)
            session.flush()
            lost.rollback()
        session.enqueue(work, 2)
        session.flush()
        assert len(announced) == 2
        with session.begin_nested():
            session.enqueue(work, 3)
        session.enqueue(work, 4)
    assert len(announced) <= 3
    assert db.statuses() == {Status.NEW: 3}


def test_without_any_wake_up_polling_finds_the_work(
    engine: Engine, db: Database, queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """liqd/adhocracy#358, HangfireIO/Hangfire#1175: a producer may die between its COMMIT and the wake-up."""
    monkeypatch.setattr(wakeups, "notify", lambda *_: None)
    ran = threading.Semaphore(0)

    @queue.task
    def work(n: int) -> None:
        ran.release()

    worker = Worker(queue, engine, poll_max=0.5)
    with running(worker):
        for n in range(3):
            with db.engine.begin() as connection:
                row = {"id": new_id(), "name": "work", "body": f'{{"n": {n}}}'}
                connection.execute(insert(db.table), [row])
            assert ran.acquire(timeout=30)
        worker.stop()


def test_a_handler_always_finds_what_was_committed_with_its_task(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """netbox-community/netbox#18880, rails/rails#51426: woken too early, the consumer finds no record."""
    missing: list[int] = []
    done = threading.Semaphore(0)

    @queue.task
    def work(context: TaskContext, n: int) -> None:
        if context.session.get(Order, n) is None:
            missing.append(n)
        done.release()

    worker = Worker(queue, engine, poll_min=0.005)
    with running(worker):
        for n in range(1, 31):
            with TaskSession(db.engine) as session, session.begin():
                with session.begin_nested():
                    session.enqueue(work, n)
                session.flush()
                session.add(Order(id=n))
        for _ in range(30):
            assert done.acquire(timeout=30)
        worker.stop()
    assert missing == []
