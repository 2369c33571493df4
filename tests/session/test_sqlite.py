"""SQLite: savepoints that roll back, and no "database is locked" after a read (rule 2, R04, R44)."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue.exceptions import InvalidSetting, SavepointWithoutBegin
from sa_taskqueue.session import TaskSession, enqueue, prepare_sqlite, sqlite_engine
from tests.session.models import Base, Customer, Job, send_receipt


@pytest.fixture
def path(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'file.db'}"
    engine = sqlite_engine(url)
    Base.metadata.create_all(engine)
    engine.dispose()
    return url


def _count(url: str) -> int:
    engine = create_engine(url)
    with Session(engine) as session:
        found = len(session.scalars(select(Job.id)).all())
    engine.dispose()
    return found


def _pragma(engine: Engine, name: str) -> Any:
    with engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1)])
def test_the_settings(tmp_path: Path, synchronous: Any, number: int) -> None:
    engine = sqlite_engine(f"sqlite:///{tmp_path / 'new.db'}", synchronous=synchronous)
    assert (_pragma(engine, "journal_mode"), _pragma(engine, "synchronous")) == ("wal", number)
    assert _pragma(engine, "busy_timeout") >= 10_000
    engine.dispose()


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="synchronous"):
        sqlite_engine("sqlite://", synchronous="OFF")  # type: ignore[arg-type]


def test_an_engine_of_another_database_is_refused() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidSetting, match="an SQLite engine"):
        prepare_sqlite(create_engine("postgresql+psycopg://h/d"))


def test_a_transaction_begins_immediate_unless_told_otherwise(path: str) -> None:
    engine = sqlite_engine(path)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with engine.begin():
        pass
    with engine.execution_options(sqlite_begin="DEFERRED").begin():
        pass
    engine.dispose()
    assert statements == ["BEGIN IMMEDIATE", "BEGIN DEFERRED"]


def test_preparing_twice_begins_once(path: str) -> None:
    engine = sqlite_engine(path)
    prepare_sqlite(engine)
    with TaskSession(engine) as session:
        session.enqueue(send_receipt, 1)
        session.commit()
    engine.dispose()
    assert _count(path) == 1


@pytest.mark.parametrize("join", [False, True])
def test_a_savepoint_is_undone_by_the_outer_rollback(path: str, join: bool) -> None:
    engine = sqlite_engine(path)
    with engine.connect() as connection, connection.begin() as transaction:
        bind: Any = connection if join else engine
        if not join:
            transaction.rollback()
        with TaskSession(bind, join_transaction_mode="create_savepoint") as session:
            with session.begin_nested():
                session.enqueue(send_receipt, 1)
            if join:
                session.commit()
            else:
                session.rollback()
        if join:
            transaction.rollback()
    engine.dispose()
    assert _count(path) == 0


@pytest.mark.parametrize("key", [None, "k"])
def test_a_savepoint_on_an_engine_as_it_comes_is_refused(path: str, key: str | None) -> None:
    engine = create_engine(path)
    with TaskSession(engine) as session:
        savepoint = session.begin_nested()
        session.enqueue(send_receipt.using(unique_key=key), 1)
        with pytest.raises(SavepointWithoutBegin, match="prepare_sqlite"):
            session.flush()
        savepoint.rollback()
    with TaskSession(engine) as session, session.begin_nested(), pytest.raises(SavepointWithoutBegin):
        session.enqueue_many(send_receipt, [{"order_id": 1}])
    with (
        engine.connect() as connection,
        connection.begin(),
        Session(connection, join_transaction_mode="create_savepoint") as plain,
    ):
        enqueue(plain, send_receipt, 1)
        with pytest.raises(SavepointWithoutBegin):
            plain.commit()
    engine.dispose()
    assert _count(path) == 0


def test_an_engine_as_it_comes_serves_without_savepoints(path: str) -> None:
    engine = create_engine(path)
    with TaskSession(engine) as session:
        session.enqueue(send_receipt, 1)
        session.rollback()
        session.enqueue(send_receipt, 2)
        session.commit()
    engine.dispose()
    assert _count(path) == 1


def test_an_engine_with_a_begin_of_its_own_serves(path: str) -> None:
    engine = create_engine(path)

    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    with TaskSession(engine) as session:
        with session.begin_nested():
            session.enqueue(send_receipt, 1)
        session.rollback()
        with session.begin_nested():
            session.enqueue(send_receipt, 2)
        session.commit()
    engine.dispose()
    assert _count(path) == 1


async def test_aiosqlite(path: str) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    from sa_taskqueue.session import AsyncTaskSession

    url = path.replace("sqlite:", "sqlite+aiosqlite:")
    stock = create_async_engine(url)
    async with AsyncTaskSession(stock) as session:
        await session.begin_nested()
        session.enqueue(send_receipt, 1)
        with pytest.raises(SavepointWithoutBegin):
            await session.flush()
    await stock.dispose()
    engine = create_async_engine(url)
    prepare_sqlite(engine)
    async with AsyncTaskSession(engine) as session:
        async with session.begin_nested():
            session.enqueue(send_receipt, 1)
        await session.rollback()
        session.enqueue(send_receipt, 2)
        await session.commit()
    await engine.dispose()
    assert _count(path) == 1


def test_writers_that_have_read_first_wait_for_each_other(path: str) -> None:
    """Without BEGIN IMMEDIATE a transaction that has read fails at once when another has written since."""
    engine = sqlite_engine(path)
    factory = sessionmaker(engine, class_=TaskSession)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(25):
                with factory.begin() as session:
                    session.scalars(select(Customer)).all()
                    session.add(Customer(name="Ada"))
                    session.enqueue(send_receipt, number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    engine.dispose()
    assert failures == []
    assert _count(path) == 150


def test_many_engines_may_start_on_a_new_file_at_once(tmp_path: Path) -> None:
    """The switch to WAL ignores the busy timeout."""
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        engine = sqlite_engine(url)
        barrier.wait(60)
        try:
            assert _pragma(engine, "journal_mode") == "wal"
        except BaseException as error:
            failures.append(error)
        engine.dispose()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_the_error_does_not_depend_on_what_was_written_before(path: str) -> None:
    """Whether the driver has sent BEGIN already would hide the mistake until one day nothing was written before."""
    engine = create_engine(path)
    with TaskSession(engine) as session:
        session.add(Customer(name="Ada"))
        session.flush()
        session.begin_nested()
        session.enqueue(send_receipt, 1)
        with pytest.raises(SavepointWithoutBegin):
            session.flush()
    engine.dispose()
