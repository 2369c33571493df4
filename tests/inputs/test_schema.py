"""A table that is not as the model says: a named error wherever it is met first, with what to do."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, Table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from sa_taskqueue.exceptions import NarrowCharset, SchemaMissing, SchemaOutdated
from sa_taskqueue.session import TaskSession, enqueue
from sa_taskqueue.worker import Worker
from tests.inputs.conftest import Produce
from tests.inputs.models import Note, producer, work
from tests.worker.support import Database, drain

COLUMN = "max_attempts"


@pytest.fixture
def no_table(admin: Engine, jobs: Table) -> None:
    jobs.drop(admin)


@pytest.fixture
def no_column(admin: Engine, jobs: Table) -> None:
    with admin.begin() as connection:
        connection.execute(text(f"ALTER TABLE {jobs.name} DROP COLUMN {COLUMN}"))


@pytest.mark.every_driver
def test_a_missing_table_is_named_by_every_way_to_store_tasks(no_table: None, engine: Engine, produce: Produce) -> None:
    with TaskSession(engine) as session:
        with pytest.raises(SchemaMissing, match=r"inputs_job does not exist.*migrations") as caught:
            produce(session)
        assert isinstance(caught.value.__cause__, DBAPIError)


@pytest.mark.every_driver
def test_a_missing_column_is_named_by_every_way_to_store_tasks(
    no_column: None, engine: Engine, produce: Produce
) -> None:
    with TaskSession(engine) as session, pytest.raises(SchemaOutdated, match="migration") as caught:
        produce(session)
    assert (caught.value.table, caught.value.column) == ("inputs_job", COLUMN)


def test_every_kind_of_session_names_them_and_goes_on_after_the_rollback(no_table: None, opened: Session) -> None:
    opened.add(Note(text="lost with the task"))
    enqueue(opened, work, "one")
    with pytest.raises(SchemaMissing):
        opened.commit()
    opened.rollback()
    opened.add(Note(text="kept"))
    opened.commit()
    assert [note.text for note in opened.query(Note)] == ["kept"]


def test_autoflush_names_them_as_well(no_table: None, opened: Session) -> None:
    enqueue(opened, work, "one")
    with pytest.raises(SchemaMissing):
        opened.query(Note).all()


@pytest.mark.every_driver
async def test_an_async_session_names_them(no_table: None, async_engine: Any) -> None:
    from sa_taskqueue.session import AsyncTaskSession

    async with AsyncTaskSession(async_engine) as session:
        session.enqueue(work, "one")
        with pytest.raises(SchemaMissing):
            await session.commit()


@pytest.mark.every_driver
async def test_an_async_session_names_the_column(no_column: None, async_engine: Any) -> None:
    from sa_taskqueue.session import AsyncTaskSession

    async with AsyncTaskSession(async_engine) as session:
        session.enqueue(work, "one")
        with pytest.raises(SchemaOutdated) as caught:
            await session.commit()
    assert caught.value.column == COLUMN


def test_errors_of_the_users_own_tables_stay_sqlalchemys(
    admin: Engine, jobs: Table, db: Database, opened: Session
) -> None:
    Note.__table__.drop(admin)  # type: ignore[attr-defined]
    enqueue(opened, work, "one")
    opened.add(Note(text="nowhere"))
    with pytest.raises(DBAPIError, match="inputs_note"):
        opened.commit()
    assert db.statuses() == {}


def test_a_worker_does_not_start_without_its_table(no_table: None, engine: Engine) -> None:
    with pytest.raises(SchemaMissing, match=r"inputs_job.*migrations"):
        drain(Worker(producer, engine, drain=True))


def test_a_worker_does_not_start_without_a_column(no_column: None, engine: Engine) -> None:
    with pytest.raises(SchemaOutdated, match=rf"{COLUMN}.*migration"):
        drain(Worker(producer, engine, drain=True))


@pytest.mark.servers("mysql", "mariadb")
@pytest.mark.parametrize("columns", ["every", "one"])
def test_a_column_that_cannot_hold_emoji_keeps_a_worker_from_starting(
    admin: Engine, jobs: Table, engine: Engine, columns: str
) -> None:
    change = "CONVERT TO CHARACTER SET utf8mb3" if columns == "every" else "MODIFY body LONGTEXT CHARACTER SET utf8mb3"
    with admin.begin() as connection:
        connection.execute(text(f"ALTER TABLE {jobs.name} {change}"))
    with pytest.raises(NarrowCharset, match="CONVERT TO CHARACTER SET utf8mb4") as caught:
        drain(Worker(producer, engine, drain=True))
    assert caught.value.charset == "utf8mb3"
    with admin.begin() as connection:
        connection.execute(text(f"ALTER TABLE {jobs.name} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
    drain(Worker(producer, engine, drain=True))
