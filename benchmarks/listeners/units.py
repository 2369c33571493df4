"""Producers that commit a business row together with the task, through an AsyncSession on asyncpg: ours and PGQueuer's.

PGQueuer joins the transaction through the driver's own connection, which is how it can be had with SQLAlchemy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from benchmarks.listeners.peer import ENTRYPOINT
from benchmarks.tables import BenchSale
from sa_taskqueue import AsyncTaskSession

Unit = Callable[[Any], Awaitable[None]]


def own_units(url: URL, task: Any) -> Any:
    """Sends by the library's session."""

    async def unit(session: AsyncTaskSession) -> None:
        session.add(BenchSale(status="complete"))
        session.enqueue(task, time.monotonic())

    return _units(url, AsyncTaskSession, unit)


def peer_units(url: URL) -> Any:
    """Sends by PGQueuer in the transaction of a plain session."""
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    async def unit(session: AsyncSession) -> None:
        started = repr(time.monotonic()).encode()
        session.add(BenchSale(status="complete"))
        await session.flush()
        raw = await (await session.connection()).get_raw_connection()
        await Queries(AsyncpgDriver(raw.driver_connection)).enqueue(ENTRYPOINT, started)

    return _units(url, AsyncSession, unit)


@contextmanager
def _units(url: URL, session_class: type[AsyncSession], unit: Unit) -> Iterator[Callable[[], None]]:
    engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))
    factory = async_sessionmaker(engine, class_=session_class)

    async def commit() -> None:
        async with factory.begin() as session:
            await unit(session)

    with asyncio.Runner() as runner:
        yield lambda: runner.run(commit())
        runner.run(engine.dispose())
