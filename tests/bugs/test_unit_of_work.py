"""A task is stored if and only if the change beside it was, whatever way the change was made."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, delete, event, insert, text, update
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from sa_taskqueue.exceptions import TransactionEnded
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from tests.models import Order
from tests.worker.support import Database

WAYS = {
    "core insert": lambda session: session.execute(insert(Order).values(id=1)),
    "core update": lambda session: session.execute(update(Order).values(status="x")),
    "text": lambda session: session.execute(text("INSERT INTO orders (id, status) VALUES (1, 'x')")),
    "bulk_save_objects": lambda session: session.bulk_save_objects([Order(id=1)]),
    "bulk_insert_mappings": lambda session: session.bulk_insert_mappings(Order, [{"id": 1}]),
    "nothing": lambda session: None,
}


@pytest.mark.parametrize("first", ["task", "change"])
@pytest.mark.servers("sqlite", "postgresql")
def test_a_task_beside_statements_that_pass_the_unit_of_work_follows_their_fate(
    engine: Engine, db: Database, queue: TaskQueue, first: str
) -> None:
    """sqlalchemy-continuum#174, #251, kvesteri/postgresql-audit#33: bulk and Core statements fire no flush event."""

    @queue.task
    def work() -> None: ...

    def both(session: TaskSession, way: str) -> None:
        if first == "task":
            session.enqueue(work)
        WAYS[way](session)
        if first == "change":
            session.enqueue(work)

    for stored, way in enumerate(WAYS):
        with TaskSession(engine, autoflush=False) as session:
            both(session, way)
            session.rollback()
            assert db.statuses().get(Status.NEW, 0) == stored, way
            both(session, way)
            session.commit()
            assert db.statuses() == {Status.NEW: stored + 1}, way
            session.execute(delete(Order))
            session.commit()


@pytest.mark.servers("sqlite", "postgresql")
def test_what_leaves_the_session_before_the_flush_is_not_stored(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """sqlalchemy-continuum#251: expunge_all, close and reset drop a task as they drop any other pending object."""

    @queue.task
    def work() -> None: ...

    with TaskSession(engine) as session:
        for leave in (Session.expunge_all, Session.close, Session.rollback, Session.reset):
            session.enqueue(work)
            leave(session)
            session.commit()
        with session.no_autoflush:
            session.enqueue(work)
            session.execute(text("SELECT 1"))
        session.commit()
    assert db.statuses() == {Status.NEW: 1}


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_a_task_too_late_for_the_commit_is_an_error_and_not_lost(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """pallets-eco/flask-sqlalchemy#645: an object added in after_commit stays pending, and nobody is told."""
    refused: list[TransactionEnded] = []

    @queue.task
    def work() -> None: ...

    registry = scoped_session(sessionmaker(engine, class_=TaskSession))

    @event.listens_for(registry, "after_commit")
    def late(session: TaskSession) -> None:
        try:
            session.enqueue(work)
        except TransactionEnded as error:
            refused.append(error)

    registry().enqueue(work)
    registry.commit()
    registry.remove()
    assert (len(refused), db.statuses()) == (1, {Status.NEW: 1})


def test_duplicates_among_orm_objects_bulk_and_keys_cost_the_caller_nothing(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """rails/solid_queue#224: PostgreSQL aborts a transaction at a violation, caught or not."""

    @queue.task
    def work(n: int) -> None: ...

    keyed = work.using(unique_key="k")
    with TaskSession(engine) as session, session.begin():
        session.add(Order(id=1))
        session.enqueue(keyed, 0)
        session.enqueue(keyed, 1)
        session.flush()
        session.enqueue(keyed, 2)
        keys = [work.using(unique_key=str(n % 90)).new(n) for n in range(100)]
        ids = session.enqueue_many(work, keys)
        session.add(Order(id=2))
    assert len(set(ids)) == 90
    assert db.statuses() == {Status.NEW: 91}
    with Session(db.engine) as session:
        assert session.query(Order).count() == 2
