"""What a database refuses although the table is right: a named error that says what to do, and nothing lost."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Engine, Table, create_engine, text
from sqlalchemy.pool import NullPool

from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import (
    AutocommitEngine,
    DatabaseBusy,
    InMemoryDatabase,
    InsufficientPrivilege,
    IsolationRefused,
    ReadOnlyDatabase,
    ServerUnreachable,
    StorageFull,
)
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import never
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.inputs.conftest import Produce, on_connect
from tests.inputs.models import Job, Note, producer, work
from tests.worker.support import Database, drain


@pytest.fixture
def restricted(admin: Engine, jobs: Table, url: URL) -> Iterator[Engine]:
    """An engine of a PostgreSQL role that may read the table and nothing else."""
    role = f"inputs_{uuid.uuid4().hex[:12]}"
    with admin.begin() as connection:
        connection.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'inputs'"))
        connection.execute(text(f"GRANT SELECT ON {jobs.name} TO {role}"))
    engine = create_engine(url.set(username=role, password="inputs"), poolclass=NullPool)
    yield engine
    engine.dispose()
    with admin.begin() as connection:
        connection.execute(text(f"DROP OWNED BY {role}"))
        connection.execute(text(f"DROP ROLE {role}"))


def test_a_read_only_database_is_named_where_a_task_is_stored(
    read_only: Engine, db: Database, produce: Produce
) -> None:
    with TaskSession(read_only) as session, pytest.raises(ReadOnlyDatabase, match="primary server"):
        produce(session)
    assert db.statuses() == {}


def test_a_worker_does_not_start_on_a_read_only_database(read_only: Engine, db: Database) -> None:
    db.put(work, "waits")
    with pytest.raises(ReadOnlyDatabase):
        drain(Worker(producer, read_only, drain=True))
    assert db.statuses() == {Status.NEW: 1}


@pytest.mark.servers("postgresql")
def test_a_missing_right_is_named_with_the_grant(restricted: Engine, db: Database, produce: Produce) -> None:
    grant = rf"GRANT SELECT, INSERT, UPDATE, DELETE ON inputs_job TO {restricted.url.username}"
    with TaskSession(restricted) as session, pytest.raises(InsufficientPrivilege, match=grant):
        produce(session)
    assert db.statuses() == {}


@pytest.mark.servers("postgresql")
def test_a_worker_without_the_right_does_not_start(restricted: Engine, db: Database) -> None:
    with pytest.raises(InsufficientPrivilege, match="GRANT"):
        drain(Worker(producer, restricted, drain=True))


@pytest.mark.servers("sqlite")
def test_a_full_disk_is_named_and_nothing_is_stored(db: Database, engine: Engine) -> None:
    with db.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    on_connect(engine, f"PRAGMA max_page_count = {pages + 1}")
    with TaskSession(engine) as session:
        session.add(Note(text="with the task"))
        session.enqueue(work, "x" * 100_000)
        with pytest.raises(StorageFull, match="no space left"):
            session.commit()
        session.rollback()
    with TaskSession(engine) as session, pytest.raises(StorageFull):
        session.enqueue_many(work, [{"text": "x" * 1000}] * 200)
    assert db.statuses() == {}
    db.put(work, "x" * 100_000)


@pytest.mark.servers("sqlite")
def test_a_busy_sqlite_names_the_engine_that_waits(db: Database, url: URL, produce: Produce) -> None:
    stock = create_engine(url, connect_args={"timeout": 0.05}, poolclass=NullPool)
    with db.engine.connect() as holder, TaskSession(stock) as session:
        holder.execute(text("SELECT 1"))  # BEGIN IMMEDIATE goes before it
        with pytest.raises(DatabaseBusy, match="sqlite_engine"):
            produce(session)
    assert db.statuses() == {}


def test_a_worker_refuses_an_autocommit_engine(engine: Engine, jobs: Table) -> None:
    with pytest.raises(AutocommitEngine):
        drain(Worker(producer, engine.execution_options(isolation_level="AUTOCOMMIT"), drain=True))


def test_a_worker_refuses_a_database_in_memory() -> None:
    with pytest.raises(InMemoryDatabase, match="Use a file"):
        drain(Worker(producer, create_engine("sqlite://", poolclass=NullPool), drain=True))


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_worker_names_a_database_that_is_not_there(url: URL) -> None:
    with pytest.raises(ServerUnreachable, match="Check host"):
        drain(Worker(producer, create_engine(url.set(database="no_such_database")), drain=True))


def test_a_stricter_isolation_of_the_handlers_session_is_refused(engine: Engine, db: Database) -> None:
    queue, refused = TaskQueue(Job), []

    @queue.task(retry=never)
    def strict(context: TaskContext) -> None:
        with pytest.raises(IsolationRefused, match="SERIALIZABLE") as caught:
            context.session.connection(execution_options={"isolation_level": "SERIALIZABLE"})
        refused.append(caught.value)

    db.put(strict)
    drain(Worker(queue, engine, drain=True))
    assert len(refused) == 1
    assert db.statuses() == {Status.COMPLETED: 1}


OLD = {"postgresql": (9, 4), "mysql": (5, 7, 44), "mariadb": (10, 5, 28)}


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_server_too_old_is_served_by_the_portable_lease_and_named_once(
    engine: Engine, db: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sa_taskqueue.adapters.registry._adapters", {})
    dialect: Any = engine.dialect
    monkeypatch.setattr(dialect, "_get_server_version_info", lambda _connection: OLD[dialect.name])
    normalized = "_mariadb_normalized_version_info"
    if not isinstance(getattr(type(dialect), normalized, None), property):
        # SQLAlchemy 2.0 reads MariaDB's version from here, which the replaced method would have filled in.
        monkeypatch.setattr(dialect, normalized, OLD[dialect.name], raising=False)
    queue = TaskQueue(Job)

    @queue.task
    def run(n: int) -> None: ...

    db.put_many(run, 10)
    with caplog.at_level(logging.WARNING, logger="sa_taskqueue.adapters"):
        drain(Worker(queue, engine, drain=True))
    assert db.statuses() == {Status.COMPLETED: 10}
    assert [record.name for record in caplog.records].count("sa_taskqueue.adapters") == 1
