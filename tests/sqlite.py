"""SQLite engines for tests: the library's own recipe."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, create_engine, event


def sqlite_engine(url: URL) -> Any:
    """Engine or AsyncEngine (by the URL's driver) whose transactions begin with BEGIN IMMEDIATE, in WAL mode."""
    asynchronous = url.get_driver_name() == "aiosqlite"
    if asynchronous:
        from sqlalchemy.ext.asyncio import create_async_engine

        engine: Any = create_async_engine(url)
        events: Any = engine.sync_engine
    else:
        engine = events = create_engine(url)

    @event.listens_for(events, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(events, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
