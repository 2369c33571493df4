"""How a sync function reaches a held connection: in a thread for an Engine, by run_sync for an AsyncEngine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.runtime.sockets import Breaker
from sa_taskqueue.runtime.threads import OneThread

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

R = TypeVar("R")
Prepare = Callable[[Connection], None]

CUT_PATIENCE = 10.0
"""Seconds a driver may take to notice that its socket is shut, and SQLite, which has none, its busy timeout of 5 s."""


class Link(ABC):
    """One connection, opened at the first call, prepared once, and closed instead of given back to the pool."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether there is a prepared connection."""

    @abstractmethod
    async def call(self, step: Callable[[Connection], R], timeout: float | None = None) -> R:
        """Run the step with the connection, opening it first if need be.

        After `timeout` seconds, or when cancelled, the connection is cut. TimeoutError: the step was not begun, or the
        cut ended it. CommitUnknown: it is still under way, because the driver ignored the cut.
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
        self._breaker: Breaker | None = None
        self._gate = threading.Lock()
        self._begun = False
        self._left = False

    def run(self, step: Callable[[Connection], R]) -> R:
        connection = self._opened()
        with self._gate:
            if self._left:  # the caller has gone on with another connection: the step must not run twice
                raise TimeoutError("the connection took too long to open")
            self._begun = True
        return step(connection)

    def submit(self, step: Callable[[Connection], R]) -> asyncio.Future[R]:
        """Run the step in the thread; one at a time."""
        self._begun = False
        return asyncio.wrap_future(self.thread.submit(lambda: self.run(step)))

    def leave_unless_begun(self) -> bool:
        """True: the step has not begun and never will."""
        with self._gate:
            self._left = not self._begun
            return self._left

    def cut(self) -> None:
        if self._breaker is not None:
            self._breaker.cut()

    def drop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            drop(connection)
        if self._breaker is not None:
            self._breaker.close()

    def _opened(self) -> Connection:
        if self.connection is not None and self.connection.invalidated:
            self.drop()
        if self.connection is None:
            connection = opened(self._engine, self._prepare)
            self._breaker = Breaker(connection)
            self.connection = connection
        return self.connection


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
        future = seat.submit(step)
        try:
            done, _ = await asyncio.wait([future], timeout=timeout)
            if not done:
                await self._end(seat, future)
        except asyncio.CancelledError:
            seat.leave_unless_begun()
            seat.cut()
            await self._leave(future)
            raise
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

    async def _end(self, seat: _Seat, future: asyncio.Future[R]) -> None:
        """End a call whose time is over; returns if it ends by that."""
        if seat.leave_unless_begun():
            await self._leave(future)
            raise TimeoutError("no connection could be made in time")
        seat.cut()
        done, _ = await asyncio.wait([future], timeout=CUT_PATIENCE)
        if not done:
            await self._leave(future)
            raise CommitUnknown

    async def _leave(self, future: asyncio.Future[R]) -> None:
        future.add_done_callback(_retrieve)
        await self.discard()


class _AsyncSeat:
    """An AsyncConnection that one call at a time touches."""

    def __init__(self, engine: AsyncEngine, prepare: Prepare) -> None:
        self.connection: AsyncConnection | None = None
        self._engine = engine
        self._prepare = prepare
        self._breaker: Breaker | None = None

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
        if self._breaker is not None:
            self._breaker.close()

    def interrupt(self, task: asyncio.Task[R]) -> None:
        """Cancelling is left for where the socket cannot be cut: psycopg answers it by waiting for the server."""
        if self.connection is None or self._breaker is None or not self._breaker.cut():
            task.cancel()

    async def _opened(self) -> AsyncConnection:
        connection = await self._engine.connect()
        try:
            await connection.run_sync(self._prepare)
            self._breaker = await connection.run_sync(Breaker)
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
                seat.interrupt(task)
                done, _ = await asyncio.wait([task], timeout=CUT_PATIENCE)
        except asyncio.CancelledError:
            seat.interrupt(task)
            self._leave(task)
            raise
        if not done:
            self._leave(task)
            raise CommitUnknown
        if task.cancelled():
            raise TimeoutError(f"no answer within {timeout} s")
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


def _retrieve(future: asyncio.Future[R]) -> None:
    """Take the outcome of a call nobody waits for any more, else asyncio reports its error as forgotten."""
    if not future.cancelled():
        future.exception()
