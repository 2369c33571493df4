"""Many tasks at once, by batched INSERT and by COPY."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, MetaData, String, Table, event, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.models import QueueMixin
from sa_taskqueue.models.columns import COLUMNS
from sa_taskqueue.states import Status
from sa_taskqueue.store.copying import COPY_THRESHOLD, takes_copy
from sa_taskqueue.store.inserts import insert_many
from tests.store.new_tasks import keyed_task, new_task

pytestmark = pytest.mark.every_driver

MANY = COPY_THRESHOLD * 3
AWKWARD = 'tab\t newline\n return\r backslash\\ \\N \\. quote" ä😀\u2028 %s :x'


def count(connection: Connection, table: Table) -> int | None:
    return connection.scalar(select(func.count()).select_from(table))


@pytest.mark.parametrize("size", [1, COPY_THRESHOLD - 1, MANY])
def test_what_is_stored_is_what_was_given(engine: Engine, tasks: Table, size: int) -> None:
    moment = dt.datetime(2030, 1, 2, 3, 4, 5, 678_901, tzinfo=dt.UTC)
    body = json.dumps({"text": AWKWARD, "list": [1, None]}, ensure_ascii=False)
    given = [
        new_task(
            name=f"n{number}", body=body, headers=None if number % 2 else body, run_at=moment, priority=-number % 50
        )
        for number in range(size)
    ]
    with engine.begin() as connection:
        assert insert_many(connection, tasks, given) == [task.id for task in given]
    with engine.connect() as connection:
        found = {row.id: row for row in connection.execute(select(tasks))}
    assert found.keys() == {task.id for task in given}
    for task in given:
        row = found[task.id]
        assert json.loads(row.body)["text"] == AWKWARD
        assert (row.headers is None) == (task.headers is None)
        assert (row.name, row.priority, row.scheduled_at) == (task.name, task.priority, moment)
        assert row.status is Status.SCHEDULED


@pytest.mark.parametrize("size", [3, MANY])
def test_due_delayed_and_timed_tasks_go_together(engine: Engine, tasks: Table, size: int) -> None:
    due = [new_task() for _ in range(size)]
    delayed = [new_task(delay=dt.timedelta(hours=1)) for _ in range(size)]
    with engine.begin() as connection:
        insert_many(connection, tasks, [*due, *delayed])
        rows = {row.id: row for row in connection.execute(select(tasks))}
    for task in due:
        assert rows[task.id].status is Status.NEW
        assert abs(rows[task.id].scheduled_at - rows[task.id].created_at) < dt.timedelta(minutes=1)
    for task in delayed:
        assert rows[task.id].status is Status.SCHEDULED
        assert dt.timedelta(minutes=59) < rows[task.id].scheduled_at - rows[task.id].created_at


@pytest.mark.parametrize("size", [1, MANY])
def test_a_rollback_takes_all_of_them_back(engine: Engine, tasks: Table, size: int) -> None:
    with engine.connect() as connection:
        insert_many(connection, tasks, [new_task() for _ in range(size)])
        connection.rollback()
        assert count(connection, tasks) == 0


@pytest.mark.parametrize("size", [1, MANY])
def test_a_savepoint_takes_back_what_was_stored_in_it(engine: Engine, tasks: Table, size: int) -> None:
    with engine.begin() as connection:
        insert_many(connection, tasks, [new_task()])
        savepoint = connection.begin_nested()
        insert_many(connection, tasks, [new_task() for _ in range(size)])
        savepoint.rollback()
    with engine.connect() as connection:
        assert count(connection, tasks) == 1


@pytest.mark.parametrize("size", [2, MANY])
def test_an_id_that_is_taken_is_an_integrity_error(engine: Engine, tasks: Table, size: int) -> None:
    twice = new_task()
    given = [twice, *(new_task() for _ in range(size)), twice]
    with engine.connect() as connection, pytest.raises(IntegrityError):
        insert_many(connection, tasks, given)


def test_keyed_and_plain_tasks_go_together(engine: Engine, tasks: Table) -> None:
    with engine.begin() as connection:
        holder = insert_many(connection, tasks, [keyed_task("k")])[0]
        plain, duplicate, fresh = new_task(), keyed_task("k"), keyed_task("f")
        assert insert_many(connection, tasks, [plain, duplicate, fresh]) == [plain.id, holder, fresh.id]


def test_no_tasks_are_no_statement(engine: Engine, tasks: Table) -> None:
    statements: list[str] = []
    with engine.connect() as connection:
        event.listen(connection, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
        assert insert_many(connection, tasks, []) == []
    assert statements == []


class Base(DeclarativeBase):
    metadata = MetaData()


class DefaultTask(QueueMixin, Base):
    __tablename__ = "insert Default"
    tenant: Mapped[str] = mapped_column(String(20), default=lambda: "made in Python")


class PlainTask(QueueMixin, Base):
    __tablename__ = "Insert Plain"
    tenant: Mapped[str] = mapped_column(String(20), server_default="made there")


@pytest.mark.parametrize(("model", "tenant"), [(DefaultTask, "made in Python"), (PlainTask, "made there")])
def test_defaults_of_own_columns_hold_and_odd_names_are_quoted(engine: Engine, model: Any, tenant: str) -> None:
    table = model.__table__
    Base.metadata.create_all(engine)
    try:
        with engine.begin() as connection:
            insert_many(connection, table, [new_task() for _ in range(MANY)])
            assert set(connection.scalars(select(table.c.tenant))) == {tenant}
    finally:
        Base.metadata.drop_all(engine)


@pytest.mark.servers("postgresql", "postgresql18")
def test_copy_goes_to_the_schema_the_connection_translates_to(engine: Engine, tasks: Table) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql('CREATE SCHEMA "Tenant 1"')
        translated = connection.execution_options(schema_translate_map={None: "Tenant 1"})
        tasks.create(translated)
        insert_many(translated, tasks, [new_task() for _ in range(MANY)])
        assert connection.exec_driver_sql('SELECT count(*) FROM "Tenant 1".task').scalar() == MANY
        connection.rollback()


@pytest.mark.servers("postgresql", "postgresql18")
def test_psycopg_copies(engine: Engine, tasks: Table) -> None:
    with engine.connect() as connection:
        assert takes_copy(connection, tasks, COLUMNS) == (engine.dialect.driver == "psycopg")
        assert not takes_copy(connection, DefaultTask.__table__, COLUMNS)  # type: ignore[arg-type]
