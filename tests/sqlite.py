"""SQLite engines for tests, made by the library's own recipe."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL


def sqlite_engine(url: URL) -> Any:
    """Engine or AsyncEngine, by the URL's driver."""
    from sa_taskqueue.session import sqlite

    if url.get_driver_name() != "aiosqlite":
        return sqlite.sqlite_engine(url)
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url)
    sqlite.prepare_sqlite(engine)
    return engine
