"""The one place that tells an Engine from an AsyncEngine; everything below it is sync functions over Connection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.runtime import checks
from sa_taskqueue.runtime.engines import copy_without_pool
from sa_taskqueue.runtime.lane import OPERATION_TIMEOUT, Lane
from sa_taskqueue.runtime.links import Link, LoopLink, Prepare, ThreadLink

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class Portal:
    """Gives out lanes over one engine. It belongs to the process and the event loop that started it."""

    def __init__(self, engine: Engine | AsyncEngine) -> None:
        self.engine = engine
        self.sync_engine: Engine = engine if isinstance(engine, Engine) else engine.sync_engine
        self._adapter: Adapter | None = None
        self._lanes: list[Lane] = []
        self._process = os.getpid()

    @property
    def is_async(self) -> bool:
        """Whether the engine is an AsyncEngine."""
        return self.engine is not self.sync_engine

    @property
    def adapter(self) -> Adapter:
        """The adapter of the server, known after `start`."""
        if self._adapter is None:
            raise RuntimeError("Portal.start() comes first: the adapter depends on the server's version")
        return self._adapter

    async def start(self, *, connections: int = 1) -> None:
        """Connect once; refuse what cannot work: no server, AUTOCOMMIT, SQLite in memory, too small a pool."""
        link = open_link(self.engine, "start", self._recognise)
        try:
            await link.call(Connection.rollback, OPERATION_TIMEOUT)
        except (DBAPIError, OSError) as error:
            raise checks.not_started(self.sync_engine, error) from error
        finally:
            await link.close()
        checks.refuse_small_pool(self.sync_engine.pool, connections)

    def lane(self, name: str, *, timeout: float = OPERATION_TIMEOUT, autocommit: bool = False) -> Lane:
        """A lane that opens its connection at its first operation; each may take `timeout` seconds.

        With `autocommit` each statement is a transaction of its own, so that none is open between two of them.
        """
        if os.getpid() != self._process:
            raise InvalidSetting(
                setting="engine", value="used after a fork", allowed="started in the process that runs the worker"
            )
        lane = Lane(
            name,
            open_link(self.engine, name, self._prepare_autocommit if autocommit else self._prepare),
            self.adapter,
            timeout=timeout,
        )
        self._lanes.append(lane)
        return lane

    async def open_lanes(self) -> None:
        """Connect all lanes: later, others may hold every connection that the pool gives."""
        for lane in self._lanes:
            await lane.open()

    async def aclose(self) -> None:
        """Close the connections of all lanes."""
        while self._lanes:
            await self._lanes.pop().aclose()

    def _recognise(self, connection: Connection) -> None:
        checks.refuse_autocommit(connection)
        self._adapter = adapter_for(connection.dialect)
        checks.refuse_memory(connection, self._adapter)
        checks.refuse_network_file(connection, self._adapter)

    def _prepare(self, connection: Connection) -> None:
        apply_worker_settings(connection, self.adapter)

    def _prepare_autocommit(self, connection: Connection) -> None:
        apply_worker_settings(connection, self.adapter, isolation="AUTOCOMMIT")


def apply_worker_settings(connection: Connection, adapter: Adapter, *, isolation: str | None = None) -> None:
    """READ COMMITTED and the short lock timeout, once per connection: per checkout they cost 0.9 to 2.3 ms on MySQL."""
    isolation = isolation or adapter.worker_isolation
    if isolation is not None:
        connection.execution_options(isolation_level=isolation)
    for statement in adapter.worker_settings():
        connection.exec_driver_sql(statement)
    connection.commit()


def open_link(engine: Engine | AsyncEngine, name: str, prepare: Prepare) -> Link:
    """The way to a connection of the engine, which is opened at the first call."""
    if isinstance(engine, Engine):
        return ThreadLink(name, engine, prepare)
    return LoopLink(engine, prepare)


def without_pool(engine: Engine | AsyncEngine) -> Engine | AsyncEngine:
    """A second engine of the same kind that takes nothing from the user's pool."""
    if isinstance(engine, Engine):
        return copy_without_pool(engine)
    return type(engine)(copy_without_pool(engine.sync_engine))
