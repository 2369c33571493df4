"""SQLite engines on which transactions and savepoints do what they say.

Python's sqlite3 sends BEGIN late, before the first write only: a savepoint before that survives the outer rollback, and
a transaction that read first fails at once with "database is locked" when another one has written in between, whatever
the timeout (measured 2026-11-30, SQLite 3.40). Here BEGIN IMMEDIATE is the first statement of each transaction, which
thus holds the one write lock from its start. Transactions that only read share the file with a writer by the execution
option `sqlite_begin="DEFERRED"` of an engine (`engine.execution_options(...)`) or a connection.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, cast

from sqlalchemy import create_engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from sa_taskqueue.exceptions import InvalidSetting

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

Synchronous = Literal["FULL", "NORMAL"]

BEGIN_OPTION = "sqlite_begin"

BUSY_TIMEOUT = 30.0
"""Seconds a writer waits for the one write lock."""


def sqlite_engine(url: str | URL, *, synchronous: Synchronous = "FULL", **options: Any) -> Engine:
    """Make an SQLite engine with BEGIN IMMEDIATE, WAL and a busy timeout.

    `synchronous="NORMAL"` is faster and may lose the last commits at a power failure. `options` go to `create_engine`.
    """
    engine = create_engine(url, **options)
    prepare_sqlite(engine, synchronous=synchronous)
    return engine


def prepare_sqlite(engine: Engine | AsyncEngine, *, synchronous: Synchronous = "FULL") -> None:
    """Give an SQLite engine that has not connected yet the settings of `sqlite_engine`."""
    if synchronous not in ("FULL", "NORMAL"):
        raise InvalidSetting(setting="synchronous", value=synchronous, allowed='"FULL" or "NORMAL"')
    target = cast("Engine", getattr(engine, "sync_engine", engine))
    if not isinstance(target.dialect, SQLiteDialect):
        raise InvalidSetting(setting="engine", value=target.url.render_as_string(), allowed="an SQLite engine")

    def on_connect(dbapi_connection: Any, _record: object) -> None:
        dbapi_connection.isolation_level = None  # sqlite3 sends no BEGIN of its own any more
        _prepare(dbapi_connection, synchronous)

    if not event.contains(target, "begin", _begin_immediate):
        event.listen(target, "connect", on_connect)
        event.listen(target, "begin", _begin_immediate)


def _begin_immediate(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        deferred = options.get(BEGIN_OPTION) == "DEFERRED"
        connection.exec_driver_sql("BEGIN DEFERRED" if deferred else "BEGIN IMMEDIATE")


def _prepare(dbapi_connection: Any, synchronous: Synchronous) -> None:
    cursor = dbapi_connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1000)}")
        _use_wal(cursor)
        cursor.execute(f"PRAGMA synchronous = {synchronous}")
    finally:
        cursor.close()


def _use_wal(cursor: Any) -> None:
    """Switch to WAL; the switch ignores the busy timeout, so several processes that start at once take turns here."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.fetchall()
            return
        except Exception as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
