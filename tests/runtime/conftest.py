"""Fixtures of the runtime's tests: one test for Engine and AsyncEngine alike, a table to write to, a way to kill."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.pool import NullPool

from sa_taskqueue.runtime.portal import Portal
from tests.sqlite import sqlite_engine
from tests.tcp_proxy import TcpProxy

MySQL = ("mysql", "mariadb")


@pytest.fixture(params=["sync", "async"])
def any_engine(request: pytest.FixtureRequest, engine: Engine, async_engine: Any) -> Any:
    """The Engine, then the AsyncEngine."""
    return engine if request.param == "sync" else async_engine


@pytest.fixture
async def portal(any_engine: Any) -> AsyncIterator[Portal]:
    portal = Portal(any_engine)
    await portal.start()
    yield portal
    await portal.aclose()


@pytest.fixture
def admin(database_url: URL) -> Iterator[Engine]:
    """A second way to the database, for what the test does behind the library's back."""
    sqlite = database_url.get_backend_name() == "sqlite"
    engine = sqlite_engine(database_url) if sqlite else create_engine(database_url, poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def notes(admin: Engine) -> Iterator[Callable[[], list[int]]]:
    """A table `note` with a column `n`; the result reads what is committed."""
    with admin.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS note"))
        connection.execute(text("CREATE TABLE note (n INTEGER PRIMARY KEY, v INTEGER)"))

    def committed() -> list[int]:
        with admin.connect() as connection:
            return list(connection.execute(text("SELECT n FROM note ORDER BY n")).scalars())

    yield committed
    with admin.begin() as connection:
        connection.execute(text("DROP TABLE note"))


@pytest.fixture
def kill(admin: Engine, server: str) -> Callable[[int], None]:
    """End a connection of the server by the number that `session_number` gave."""

    def kill(number: int) -> None:
        with admin.begin() as connection:
            if server in MySQL:
                connection.execute(text(f"KILL {number}"))
            else:
                connection.execute(text("SELECT pg_terminate_backend(:number)"), {"number": number})

    return kill


@pytest.fixture
def proxy(database_url: URL) -> Iterator[TcpProxy]:
    """A proxy in front of the server."""
    with TcpProxy(
        database_url.host or "127.0.0.1",
        database_url.port or {"postgresql": 5432}.get(database_url.get_backend_name(), 3306),
    ) as proxy:
        yield proxy


@pytest.fixture(params=["sync", "async"])
async def proxied(request: pytest.FixtureRequest, url: URL, async_url: URL, proxy: TcpProxy) -> AsyncIterator[Any]:
    """An engine whose connections go through the proxy."""
    if request.param == "sync":
        engine = create_engine(url.set(host="127.0.0.1", port=proxy.port))
        yield engine
        engine.dispose()
        return
    from sqlalchemy.ext.asyncio import create_async_engine

    async_engine = create_async_engine(async_url.set(host="127.0.0.1", port=proxy.port))
    yield async_engine
    await async_engine.dispose()


def add_note(connection: Connection, n: int) -> int:
    """A store operation: one row."""
    connection.execute(text("INSERT INTO note (n) VALUES (:n)"), {"n": n})
    return n


def session_number(connection: Connection) -> int:
    """What the server calls this connection."""
    function = "CONNECTION_ID()" if connection.dialect.name in MySQL else "pg_backend_pid()"
    return int(connection.execute(text(f"SELECT {function}")).scalar_one())
