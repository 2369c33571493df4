"""How a sync function reaches a held connection: in a thread for an Engine, by run_sync for an AsyncEngine."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.runtime.sockets import cut

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

P = ParamSpec("P")
R = TypeVar("R")
Prepare = Callable[[Connection], None]


class Link(ABC):
    """One connection, opened at the first call, prepared once, and closed instead of given back to the pool."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether there is a prepared connection."""

    @abstractmethod
    async def call(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function with the connection, opening it first if need be. Cancelling it cuts the connection."""

    @abstractmethod
    async def discard(self) -> None:
        """Drop a connection that is broken; the next call opens another."""

    @abstractmethod
    async def close(self) -> None:
        """Drop the connection for good."""


class ThreadLink(Link):
    """Over an Engine: a thread of its own, because drivers such as sqlite3 tie a connection to its thread."""

    def __init__(self, name: str, engine: Engine, prepare: Prepare) -> None:
        self._engine = engine
        self._prepare = prepare
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"sa_taskqueue-{name}")

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    async def call(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        def step() -> R:
            return function(self._opened(), *args, **kwargs)

        return await self._hop(step)

    async def discard(self) -> None:
        await self._hop(self._drop)

    async def close(self) -> None:
        await self.discard()
        self._thread.shutdown(wait=False)

    async def _hop(self, step: Callable[[], R]) -> R:
        future = self._thread.submit(step)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if self._connection is not None and not future.done():
                cut(self._connection)
            raise

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = opened(self._engine, self._prepare)
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            drop(connection)


class LoopLink(Link):
    """Over an AsyncEngine: the whole function runs in one run_sync on the caller's loop."""

    def __init__(self, engine: AsyncEngine, prepare: Prepare) -> None:
        self._engine = engine
        self._prepare = prepare
        self._connection: AsyncConnection | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    async def call(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        connection = self._connection or await self._open()
        try:
            return await connection.run_sync(function, *args, **kwargs)
        except asyncio.CancelledError:
            await asyncio.shield(self.discard())
            raise

    async def discard(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.run_sync(drop)

    async def close(self) -> None:
        await self.discard()

    async def _open(self) -> AsyncConnection:
        connection = await self._engine.connect()
        try:
            await connection.run_sync(self._prepare)
        except BaseException:
            await asyncio.shield(connection.run_sync(drop))
            raise
        self._connection = connection
        return connection


def opened(engine: Engine, prepare: Prepare) -> Connection:
    """A connection of the engine, prepared; closed again if that fails."""
    connection = engine.connect()
    try:
        prepare(connection)
    except BaseException:
        drop(connection)
        raise
    return connection


def drop(connection: Connection) -> None:
    """Close the connection itself: settings made for the worker must not return to the user's pool."""
    with contextlib.suppress(DBAPIError, OSError):
        if not connection.closed and not connection.invalidated:
            connection.invalidate()
    connection.close()
