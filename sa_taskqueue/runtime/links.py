"""How a sync function reaches a held connection: in a thread for an Engine, by run_sync for an AsyncEngine."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.runtime.sockets import cut
from sa_taskqueue.runtime.threads import OneThread

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

R = TypeVar("R")
Prepare = Callable[[Connection], None]

CUT_PATIENCE = 10.0
"""Seconds a driver may take to notice that its socket is shut, and SQLite, which has none, its busy timeout."""


class Link(ABC):
    """One connection, opened at the first call, prepared once, and closed instead of given back to the pool."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether there is a prepared connection."""

    @abstractmethod
    async def call(self, step: Callable[[Connection], R], timeout: float | None = None) -> R:
        """Run the step with the connection, opening it first if need be.

        After `timeout` seconds, or when cancelled, the connection is cut. TimeoutError: the driver ignored even that.
        """

    @abstractmethod
    async def discard(self) -> None:
        """Drop a connection that may be broken, without waiting for it; the next call opens another."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection for good."""


class _Seat:
    """A thread and the connection that only this thread touches: sqlite3 ties a connection to its thread."""

    def __init__(self, name: str, engine: Engine, prepare: Prepare) -> None:
        self.thread = OneThread(name)
        self.connection: Connection | None = None
        self._engine = engine
        self._prepare = prepare

    def opened(self) -> Connection:
        if self.connection is not None and self.connection.invalidated:
            self.drop()
        if self.connection is None:
            self.connection = opened(self._engine, self._prepare)
        return self.connection

    def drop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            drop(connection)


class ThreadLink(Link):
    """Over an Engine."""

    def __init__(self, name: str, engine: Engine, prepare: Prepare) -> None:
        self._name = f"sa_taskqueue-{name}"
        self._engine = engine
        self._prepare = prepare
        self._seat = _Seat(self._name, engine, prepare)

    @property
    def is_open(self) -> bool:
        return self._seat.connection is not None

    async def call(self, step: Callable[[Connection], R], timeout: float | None = None) -> R:
        seat = self._seat
        future = asyncio.wrap_future(seat.thread.submit(lambda: step(seat.opened())))
        try:
            done, _ = await asyncio.wait([future], timeout=timeout)
            if not done:
                _cut(seat.connection)
                done, _ = await asyncio.wait([future], timeout=CUT_PATIENCE)
        except asyncio.CancelledError:
            future.add_done_callback(_retrieve)
            _cut(seat.connection)
            raise
        if not done:
            future.add_done_callback(_retrieve)
            raise TimeoutError(f"the driver did not return within {timeout} s")
        return future.result()

    async def discard(self) -> None:
        seat, self._seat = self._seat, _Seat(self._name, self._engine, self._prepare)
        seat.thread.submit(seat.drop)
        seat.thread.stop()

    async def close(self) -> None:
        seat = self._seat
        if seat.connection is not None:
            dropped = asyncio.wrap_future(seat.thread.submit(seat.drop))
            await asyncio.wait([dropped], timeout=CUT_PATIENCE)
        seat.thread.stop()


class _AsyncSeat:
    """An AsyncConnection that one call at a time touches."""

    def __init__(self, engine: AsyncEngine, prepare: Prepare) -> None:
        self.connection: AsyncConnection | None = None
        self._engine = engine
        self._prepare = prepare

    async def run(self, step: Callable[[Connection], R]) -> R:
        if self.connection is not None and self.connection.invalidated:
            await self.drop()
        if self.connection is None:
            self.connection = await self._opened()
        return await self.connection.run_sync(step)

    async def drop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.run_sync(drop)

    def cut(self) -> bool:
        return self.connection is not None and _cut(self.connection.sync_connection)

    async def _opened(self) -> AsyncConnection:
        connection = await self._engine.connect()
        try:
            await connection.run_sync(self._prepare)
        except BaseException:
            await connection.run_sync(drop)
            raise
        return connection


class LoopLink(Link):
    """Over an AsyncEngine: a whole step runs in one run_sync, on the caller's loop."""

    def __init__(self, engine: AsyncEngine, prepare: Prepare) -> None:
        self._engine = engine
        self._prepare = prepare
        self._seat = _AsyncSeat(engine, prepare)
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        return self._seat.connection is not None

    async def call(self, step: Callable[[Connection], R], timeout: float | None = None) -> R:
        seat = self._seat
        task = asyncio.ensure_future(seat.run(step))
        try:
            done, _ = await asyncio.wait([task], timeout=timeout)
            if not done:
                _interrupt(seat, task)
                done, _ = await asyncio.wait([task], timeout=CUT_PATIENCE)
        except asyncio.CancelledError:
            _interrupt(seat, task)
            self._leave(task)
            raise
        if not done or task.cancelled():
            self._leave(task)
            raise TimeoutError(f"the driver did not return within {timeout} s")
        return task.result()

    async def discard(self) -> None:
        seat, self._seat = self._seat, _AsyncSeat(self._engine, self._prepare)
        await seat.drop()

    async def close(self) -> None:
        await self.discard()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=CUT_PATIENCE)

    def _leave(self, task: asyncio.Task[R]) -> None:
        """Go on with another connection; this one is closed when the interrupted task has let go of it."""
        seat, self._seat = self._seat, _AsyncSeat(self._engine, self._prepare)

        async def leave() -> None:
            await asyncio.wait([task])
            _retrieve(task)
            await seat.drop()

        leaving = asyncio.ensure_future(leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)


def _interrupt(seat: _AsyncSeat, task: asyncio.Task[R]) -> None:
    """Cancelling is left for where the socket cannot be cut: psycopg answers it by waiting for the server."""
    if not seat.cut():
        task.cancel()


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


def _cut(connection: Connection | None) -> bool:
    return connection is not None and cut(connection)


def _retrieve(future: asyncio.Future[R]) -> None:
    """Take the outcome of a call nobody waits for any more, else asyncio reports its error as forgotten."""
    if not future.cancelled():
        future.exception()
