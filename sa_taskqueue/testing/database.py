"""The database under test, through one driver, sync or async: the same calls for both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import URL, Connection, Engine, Table, create_engine, make_url

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.runtime.links import drop
from sa_taskqueue.runtime.portal import apply_worker_settings
from sa_taskqueue.session import TaskSession
from sa_taskqueue.testing.models import tables_for

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

R = TypeVar("R")

CreateEngine = Callable[[URL], Any]
"""Makes an Engine or an AsyncEngine."""


class Loop:
    """An event loop in a thread of its own. All of one AsyncEngine happens on it, as its connections belong to it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sa_taskqueue-suite", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run to the end and return the result; from any other thread."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Begin to run; from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Database:
    """An engine on an empty database or schema, in which the suite makes tables named `suite_...`.

    ``url`` names the driver; with an async one everything goes through an AsyncEngine. ``create`` makes the engine
    from the URL, by default `create_engine` or `create_async_engine`. Use it as a context manager.
    """

    def __init__(self, url: str | URL, *, create: CreateEngine | None = None) -> None:
        self.url = make_url(url)
        self.is_async: bool = self.url.get_dialect().is_async
        self.loop = Loop()
        self.engine: Engine | AsyncEngine = (create or (_create_async if self.is_async else create_engine))(self.url)
        self.adapter: Adapter = self.call(lambda connection: adapter_for(connection.dialect))

    def __enter__(self) -> Self:
        self.create_tables()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop_tables()
        self.close()

    def create_tables(self) -> None:
        """Make the suite's tables, where they are not there yet."""
        for table in tables_for(self.adapter.reservations):
            self.call(partial(table.create, checkfirst=True))

    def drop_tables(self) -> None:
        """Drop the suite's tables."""
        for table in reversed(tables_for(self.adapter.reservations)):
            self.call(table.drop)

    def empty(self) -> None:
        """Delete all rows. One transaction for each table: MySQL may not mix MEMORY and InnoDB in one."""
        for table in reversed(tables_for(self.adapter.reservations)):
            self.call(partial(_delete_all, table))

    def close(self) -> None:
        """Close the engine and the loop."""
        if isinstance(self.engine, Engine):
            self.engine.dispose()
        else:
            self.loop.run(self.engine.dispose())
        self.loop.close()

    def call(self, operation: Callable[[Connection], R]) -> R:
        """Run in a transaction of its own, and commit."""
        engine = self.engine
        if isinstance(engine, Engine):
            with engine.begin() as connection:
                return operation(connection)

        async def call() -> R:
            async with engine.begin() as connection:
                return await connection.run_sync(operation)

        return self.loop.run(call())

    def session(self, work: Callable[[TaskSession], R]) -> R:
        """Run with a session, and commit: of an AsyncTaskSession the sync session that is inside it."""
        engine = self.engine
        if isinstance(engine, Engine):
            with TaskSession(engine) as session, session.begin():
                return work(session)

        async def call() -> R:
            from sa_taskqueue.session import AsyncTaskSession

            async with AsyncTaskSession(engine) as session, session.begin():
                return await session.run_sync(work)  # type: ignore[arg-type]

        return self.loop.run(call())

    def line(self, *, autocommit: bool = False) -> Line:
        """A connection with the settings of a worker's, in a transaction from the first call to `commit`."""
        return Line(self, autocommit=autocommit)


class Line:
    """One connection, on which operations run one after the other."""

    def __init__(self, database: Database, *, autocommit: bool) -> None:
        self._database = database
        self._isolation = "AUTOCOMMIT" if autocommit else None
        self._begun = False
        self._async_connection: AsyncConnection | None = None
        engine = database.engine
        if isinstance(engine, Engine):
            connection: Connection | None = engine.connect()
        else:
            self._async_connection = database.loop.run(_connect(engine))
            connection = self._async_connection.sync_connection
        if connection is None:
            raise RuntimeError("the connection was not opened")
        self._connection = connection
        self._step(lambda connection: apply_worker_settings(connection, database.adapter, isolation=self._isolation))

    def run(self, operation: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Call the operation with the connection, in the transaction that is open, or in a new one."""

        def step(connection: Connection) -> R:
            if not self._begun:
                connection.begin()
                self._database.adapter.begin(connection)
                self._begun = True
            return operation(connection, *args, **kwargs)

        return self._step(step)

    def commit(self) -> None:
        """End the transaction, if one is open."""
        self._begun = False
        self._step(Connection.commit)

    def rollback(self) -> None:
        """Undo the transaction, if one is open."""
        self._begun = False
        self._step(Connection.rollback)

    def close(self) -> None:
        """Close the connection itself, with all that the server holds for it. May be called again."""
        if not self._connection.closed:
            self._step(drop)

    def _step(self, step: Callable[[Connection], R]) -> R:
        if self._async_connection is None:
            return step(self._connection)
        return self._database.loop.run(_run_sync(self._async_connection, step))


def _create_async(url: URL) -> AsyncEngine:
    from sqlalchemy.ext.asyncio import create_async_engine

    return create_async_engine(url)


def _delete_all(table: Table, connection: Connection) -> None:
    connection.execute(table.delete())


async def _connect(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


async def _run_sync(connection: AsyncConnection, step: Callable[[Connection], R]) -> R:
    return await connection.run_sync(step)
