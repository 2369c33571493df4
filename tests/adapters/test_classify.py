"""Errors forced on each server, through each driver that is installed, and what the library takes them for."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, MetaData, insert, select, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from tests.models import Order
from tests.support import eventually

SERVERS = ("postgresql", "mysql", "mariadb")
servers = pytest.mark.servers(*SERVERS)
every_driver = pytest.mark.every_driver


@pytest.fixture
def prepared(engine: Engine, tables: MetaData) -> Engine:
    with engine.begin() as connection:
        connection.execute(insert(Order), [{"id": 1, "status": "open"}, {"id": 2, "status": "open"}])
    return engine


@contextlib.contextmanager
def classified(engine: Engine, kind: ErrorKind) -> Iterator[None]:
    with pytest.raises(DBAPIError) as raised:
        yield
    assert adapter_for(engine.dialect).classify(raised.value) is kind, raised.value


def lock(connection: Connection, order: int) -> None:
    connection.execute(select(Order.id).where(Order.id == order).with_for_update())


@every_driver
def test_a_duplicate(prepared: Engine) -> None:
    with classified(prepared, ErrorKind.UNIQUE), prepared.begin() as connection:
        connection.execute(insert(Order), [{"id": 1, "status": "open"}])


@every_driver
def test_a_missing_table(prepared: Engine) -> None:
    with classified(prepared, ErrorKind.MISSING_TABLE), prepared.begin() as connection:
        connection.execute(text("SELECT 1 FROM nowhere"))


@every_driver
def test_a_missing_column(prepared: Engine) -> None:
    with classified(prepared, ErrorKind.MISSING_COLUMN), prepared.begin() as connection:
        connection.execute(text("SELECT absent FROM orders"))


@servers
@every_driver
def test_a_lock_that_is_not_freed_in_time(prepared: Engine) -> None:
    short = "SET lock_timeout = '50ms'"
    if prepared.dialect.name != "postgresql":
        short = "SET SESSION innodb_lock_wait_timeout = 1"
    with prepared.begin() as holder:
        lock(holder, 1)
        with classified(prepared, ErrorKind.LOCK_TIMEOUT), prepared.begin() as other:
            other.exec_driver_sql(short)
            lock(other, 1)


@servers
def test_a_deadlock(prepared: Engine) -> None:
    found: list[ErrorKind] = []
    both = threading.Barrier(2)

    def work(first: int, second: int) -> None:
        try:
            with prepared.begin() as connection:
                lock(connection, first)
                both.wait(30)
                lock(connection, second)
        except DBAPIError as error:
            found.append(adapter_for(prepared.dialect).classify(error))

    threads = [threading.Thread(target=work, args=order) for order in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ErrorKind.DEADLOCK]
    assert ErrorKind.DEADLOCK.retryable


@pytest.mark.servers("postgresql")
def test_a_conflict_between_serializable_transactions(prepared: Engine) -> None:
    engine = prepared.execution_options(isolation_level="REPEATABLE READ")
    with engine.begin() as one:
        one.execute(select(Order.id)).all()
        with prepared.begin() as two:
            two.execute(text("UPDATE orders SET status = 'b' WHERE id = 1"))
        with classified(engine, ErrorKind.SERIALIZATION):
            one.execute(text("UPDATE orders SET status = 'a' WHERE id = 1"))
        one.rollback()


@servers
@every_driver
def test_a_connection_the_server_ended(prepared: Engine) -> None:
    pg = prepared.dialect.name == "postgresql"
    whose, kill = ("pg_backend_pid()", "SELECT pg_terminate_backend({})") if pg else ("CONNECTION_ID()", "KILL {}")
    with prepared.connect() as victim:
        number = victim.exec_driver_sql(f"SELECT {whose}").scalar_one()
        with prepared.begin() as killer:
            killer.exec_driver_sql(kill.format(number))
        error = eventually(lambda: failing(victim))
    assert error is not None
    assert adapter_for(prepared.dialect).classify(error) is ErrorKind.DISCONNECT, error


def failing(connection: Connection) -> DBAPIError | None:
    try:
        connection.exec_driver_sql("SELECT 1")
    except DBAPIError as error:
        return error
    return None


@pytest.mark.servers("postgresql")
def test_a_read_only_transaction(prepared: Engine) -> None:
    with classified(prepared, ErrorKind.READ_ONLY), prepared.begin() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        connection.execute(text("DELETE FROM orders"))


@pytest.mark.servers("postgresql")
def test_a_missing_right(prepared: Engine) -> None:
    with classified(prepared, ErrorKind.NO_PRIVILEGE), prepared.begin() as connection:
        connection.exec_driver_sql("SET LOCAL ROLE pg_monitor")
        connection.execute(text("DELETE FROM orders"))


@pytest.mark.servers("sqlite")
def test_sqlite_that_another_process_writes_to(prepared: Engine) -> None:
    with prepared.connect() as holder, prepared.connect() as other:
        other.exec_driver_sql("PRAGMA busy_timeout = 10")
        other.rollback()
        adapter_for(prepared.dialect).begin(holder)
        with classified(prepared, ErrorKind.BUSY):
            adapter_for(prepared.dialect).begin(other)
    assert ErrorKind.BUSY.retryable


@pytest.mark.servers("sqlite")
def test_sqlite_that_may_only_be_read(prepared: Engine) -> None:
    with classified(prepared, ErrorKind.READ_ONLY), prepared.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = on")
        connection.execute(text("DELETE FROM orders"))


@pytest.mark.servers("sqlite")
def test_sqlite_on_a_full_disk(prepared: Engine) -> None:
    with prepared.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
        connection.rollback()
        with classified(prepared, ErrorKind.DISK_FULL):
            for number in range(1000):
                connection.execute(insert(Order), [{"id": 100 + number, "status": "x" * 20}])
        with contextlib.suppress(DBAPIError):  # SQLite has rolled back already
            connection.rollback()


@every_driver
@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("INSERT INTO orders (id, status) VALUES (1, 'open')", ErrorKind.UNIQUE),
        ("SELECT 1 FROM nowhere", ErrorKind.MISSING_TABLE),
        ("SELECT absent FROM orders", ErrorKind.MISSING_COLUMN),
    ],
    ids=lambda value: getattr(value, "value", None),
)
async def test_async_drivers(async_engine: AsyncEngine, tables: MetaData, statement: str, kind: ErrorKind) -> None:
    async with async_engine.begin() as connection:
        await connection.execute(insert(Order), [{"id": 1, "status": "open"}])
    with pytest.raises(DBAPIError) as raised:
        async with async_engine.begin() as connection:
            await connection.execute(text(statement))
    assert adapter_for(async_engine.dialect).classify(raised.value) is kind


def test_an_error_of_no_database_is_none_of_these() -> None:
    adapter = adapter_for(sqlite.dialect())
    assert adapter.classify(RuntimeError("x")) is ErrorKind.OTHER
    assert adapter.classify(ValueError("x")) is ErrorKind.UNREADABLE
    assert not ErrorKind.OTHER.retryable
