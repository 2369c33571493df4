"""Unique keys in one transaction: what is stored, what is answered, and that the caller's transaction goes on."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import (
    Connection,
    Engine,
    ForeignKey,
    Table,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.exceptions import DuplicateTask, TaskRunning
from sa_taskqueue.models import QueueMixin
from sa_taskqueue.states import Status
from sa_taskqueue.store.inserts import insert_many
from sa_taskqueue.store.new_rows import row_values
from sa_taskqueue.store.unique import Answer, insert_all_unique, insert_unique
from tests.models import Order
from tests.store.new_tasks import keyed_task, new_task


@pytest.fixture
def connection(engine: Engine, tasks: Table) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection


def row(connection: Connection, tasks: Table, task_id: uuid.UUID) -> Any:
    return connection.execute(select(tasks).where(tasks.c.id == task_id)).one()


def count(connection: Connection, tasks: Table) -> int | None:
    return connection.scalar(select(func.count()).select_from(tasks))


def set_status(connection: Connection, tasks: Table, task_id: uuid.UUID, status: Status, **values: Any) -> None:
    connection.execute(update(tasks).where(tasks.c.id == task_id).values(status=status, **values))


@pytest.mark.every_driver
def test_a_duplicate_is_answered_and_the_transaction_goes_on(engine: Engine, tasks: Table) -> None:
    orders: Any = Order.__table__
    with engine.begin() as connection:
        connection.execute(insert(orders).values(id=1))
        first = insert_unique(connection, tasks, keyed_task("k"))
        second = insert_unique(connection, tasks, keyed_task("k"))
        connection.execute(insert(orders).values(id=2))
        third = insert_unique(connection, tasks, keyed_task("k"))
    assert [answer.answer for answer in (first, second, third)] == [
        Answer.INSERTED,
        Answer.DUPLICATE,
        Answer.DUPLICATE,
    ]
    assert {first.id, second.id, third.id} == {first.id}
    with engine.connect() as connection:
        assert count(connection, tasks) == 1
        assert count(connection, orders) == 2


@pytest.mark.every_driver
def test_a_bulk_with_duplicates_takes_one_savepoint_at_most(engine: Engine, tasks: Table) -> None:
    savepoints: list[str] = []
    event.listen(engine, "savepoint", lambda _, name: savepoints.append(name))
    keys = [f"k{number % 90}" for number in range(100)]
    with engine.begin() as connection:
        insert_unique(connection, tasks, keyed_task("k7"))
        savepoints.clear()
        stored = insert_many(connection, tasks, [keyed_task(key) for key in keys])
        assert len(savepoints) <= 1
    with engine.connect() as connection:
        assert count(connection, tasks) == 90
        by_key = {row.unique_key: row.id for row in connection.execute(select(tasks))}
    assert stored == [by_key[key] for key in keys]


def test_answers_come_in_the_order_of_the_tasks(connection: Connection, tasks: Table) -> None:
    made = [keyed_task(key) for key in ("z", "a", "m", "a")]
    answers = insert_all_unique(connection, tasks, made)
    assert [answer.answer for answer in answers].count(Answer.DUPLICATE) == 1
    assert [answer.id for answer in answers[:3]] == [task.id for task in made[:3]]
    assert answers[3].id in (made[1].id, made[3].id)


def test_keys_belong_to_a_task_name_and_compare_exactly(connection: Connection, tasks: Table) -> None:
    made = [keyed_task("dup"), keyed_task("DUP "), keyed_task("dup "), keyed_task("düp"), keyed_task("dup", name="sms")]
    assert all(answer.answer is Answer.INSERTED for answer in insert_all_unique(connection, tasks, made))


@pytest.mark.parametrize("status", [Status.NEW, Status.SCHEDULED, Status.RUNNING])
def test_raise_names_the_task_that_holds_the_key(connection: Connection, tasks: Table, status: Status) -> None:
    holder = keyed_task("k")
    insert_unique(connection, tasks, holder)
    set_status(connection, tasks, holder.id, status)
    with pytest.raises(DuplicateTask) as caught:
        insert_unique(connection, tasks, keyed_task("k", "raise"))
    assert (caught.value.id, caught.value.key) == (holder.id, "k")


@pytest.mark.parametrize("status", [Status.NEW, Status.SCHEDULED])
def test_replace_gives_a_waiting_task_the_new_values_and_a_new_epoch(
    connection: Connection, tasks: Table, status: Status
) -> None:
    holder = keyed_task("k", body='{"a":1}')
    insert_unique(connection, tasks, holder)
    set_status(connection, tasks, holder.id, status, attempt=3, error='{"type": "x"}')
    newer = keyed_task("k", "replace", body='{"a":2}', queue="other", priority=-5)
    assert insert_unique(connection, tasks, newer) == (holder.id, Answer.REPLACED)
    found = row(connection, tasks, holder.id)
    assert found.body.replace(" ", "") == '{"a":2}'
    assert (found.queue, found.priority, found.status) == ("other", -5, Status.NEW)
    assert (found.epoch, found.attempt, found.error) == (1, 0, None)
    assert count(connection, tasks) == 1


def test_replace_with_a_delay_puts_the_task_off_again(connection: Connection, tasks: Table) -> None:
    holder = keyed_task("k", delay=dt.timedelta(seconds=10))
    insert_unique(connection, tasks, holder)
    insert_unique(connection, tasks, keyed_task("k", "replace", delay=dt.timedelta(hours=1)))
    found = row(connection, tasks, holder.id)
    assert found.status is Status.SCHEDULED
    assert found.scheduled_at - found.created_at > dt.timedelta(minutes=59)


def test_replace_does_not_touch_a_running_task_and_says_so(connection: Connection, tasks: Table) -> None:
    holder = keyed_task("k", body='{"a":1}')
    insert_unique(connection, tasks, holder)
    set_status(connection, tasks, holder.id, Status.RUNNING)
    with pytest.raises(TaskRunning) as caught:
        insert_unique(connection, tasks, keyed_task("k", "replace"))
    assert caught.value.id == holder.id
    assert row(connection, tasks, holder.id).epoch == 0


def test_replace_stores_a_new_task_where_the_running_one_gave_its_key_away(
    connection: Connection, tasks: Table
) -> None:
    running = keyed_task("k", until="start")
    insert_unique(connection, tasks, running)
    set_status(connection, tasks, running.id, Status.RUNNING, unique_hash=None)
    newer = keyed_task("k", "replace", until="start")
    assert insert_unique(connection, tasks, newer) == (newer.id, Answer.INSERTED)


def test_an_ended_task_leaves_its_key(connection: Connection, tasks: Table) -> None:
    ended = keyed_task("k")
    insert_unique(connection, tasks, ended)
    set_status(connection, tasks, ended.id, Status.COMPLETED, unique_hash=None)
    assert insert_unique(connection, tasks, keyed_task("k")).answer is Answer.INSERTED
    assert row(connection, tasks, ended.id).unique_key == "k"


def test_an_id_that_is_taken_is_no_duplicate_key(connection: Connection, tasks: Table) -> None:
    stored = new_task()
    insert_many(connection, tasks, [stored])
    with pytest.raises(IntegrityError):
        insert_unique(connection, tasks, keyed_task("k", id=stored.id))


class Base(DeclarativeBase):
    pass


class Parent(Base):
    __tablename__ = "unique_parent"
    id: Mapped[int] = mapped_column(primary_key=True)


class OwnTask(QueueMixin, Base):
    __tablename__ = "unique_task"
    parent_id: Mapped[int] = mapped_column(ForeignKey(Parent.id))


@pytest.fixture
def own(engine: Engine) -> Iterator[Table]:
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    yield Base.metadata.tables["unique_task"]
    Base.metadata.drop_all(engine)


def test_values_of_the_users_own_columns_are_stored(engine: Engine, own: Table) -> None:
    task = keyed_task("k")
    with engine.begin() as connection:
        connection.execute(insert(Parent).values(id=1))
        values = {**row_values(connection, [task])[0], "parent_id": 1}
        assert insert_unique(connection, own, task, values).answer is Answer.INSERTED
        assert connection.scalar(select(own.c.parent_id)) == 1


def test_another_broken_constraint_is_an_error_and_not_a_duplicate(engine: Engine, own: Table) -> None:
    task = keyed_task("k")
    with engine.connect() as connection:
        values = {**row_values(connection, [task])[0], "parent_id": None}
        with pytest.raises(IntegrityError):
            insert_unique(connection, own, task, values)
