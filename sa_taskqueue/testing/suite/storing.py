"""A task is stored if and only if the caller's transaction committed, savepoints and bulk included."""

from __future__ import annotations

import pytest

from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.testing.models import SuiteEffect
from sa_taskqueue.testing.trial import Trial


class Undone(Exception):
    """Rolls a transaction back."""


def test_a_task_and_the_change_it_belongs_to_commit_together(db: Trial) -> None:
    work = db.task()

    def order(session: TaskSession) -> None:
        session.add(SuiteEffect(note="order"))
        session.enqueue(work, 1)

    db.session(order)
    assert db.statuses() == {Status.NEW: 1}
    assert db.effects() == ["order"]


def test_a_task_is_not_stored_when_the_transaction_rolls_back(db: Trial) -> None:
    work = db.task()

    def fail(session: TaskSession) -> None:
        session.add(SuiteEffect(note="order"))
        session.enqueue(work, 1)
        session.flush()
        raise Undone

    with pytest.raises(Undone):
        db.session(fail)
    assert (db.rows(), db.effects()) == ([], [])


def test_a_savepoint_that_rolls_back_takes_its_own_tasks_along(db: Trial) -> None:
    work = db.task()

    def nested(session: TaskSession) -> list[object]:
        kept = [session.enqueue(work, 1).id]
        savepoint = session.begin_nested()
        session.enqueue(work, 2)
        session.flush()
        savepoint.rollback()
        with session.begin_nested():
            kept.append(session.enqueue(work, 3).id)
        return kept

    kept = db.session(nested)
    assert {row.id for row in db.rows()} == set(kept)


def test_tasks_in_bulk_are_stored_with_the_commit(db: Trial) -> None:
    work = db.task()

    def bulk(session: TaskSession) -> list[object]:
        savepoint = session.begin_nested()
        session.enqueue_many(work, [{"n": n} for n in range(70)])
        savepoint.rollback()
        return list(session.enqueue_many(work, [{"n": n} for n in range(70)]))

    ids = db.session(bulk)
    assert {row.id for row in db.rows()} == set(ids)
    assert {(row.status, row.attempt, row.epoch, row.crashes) for row in db.rows()} == {(Status.NEW, 0, 0, 0)}


def test_tasks_in_bulk_are_not_stored_when_the_transaction_rolls_back(db: Trial) -> None:
    work = db.task()

    def bulk(session: TaskSession) -> None:
        session.enqueue_many(work, [{"n": n} for n in range(70)])
        raise Undone

    with pytest.raises(Undone):
        db.session(bulk)
    assert db.rows() == []


def test_a_row_that_another_language_inserts_is_a_task(db: Trial) -> None:
    """Only id, name and body; the rest are defaults of the database."""
    ran: list[int] = []

    @db.queue.task
    def work(n: int) -> None:
        ran.append(n)

    row = {"id": work.new(1).id, "name": "work", "body": '{"n": 1}'}
    db.database.call(lambda connection: connection.execute(db.queue.table.insert(), row))
    stored = db.row(row["id"])  # type: ignore[arg-type]
    assert (stored.status, stored.queue, stored.priority, stored.max_attempts) == (Status.NEW, "default", 0, 10)
    db.drain()
    assert ran == [1]
