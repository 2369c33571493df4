"""What an operator's hands share: one connection, opened and closed by `async with`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, Engine, Table

from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.store.errors import named_errors

if TYPE_CHECKING:
    from types import TracebackType

    from sqlalchemy.ext.asyncio import AsyncEngine

    from sa_taskqueue.runtime.lane import Lane

P = ParamSpec("P")
R = TypeVar("R")

BATCH = 1000
"""Rows changed in one transaction: their locks are held for as long as it takes."""


class Hands:
    """Runs store functions about one table over an Engine or an AsyncEngine."""

    def __init__(self, table: Table, engine: Engine | AsyncEngine) -> None:
        self._table = table
        self._portal = Portal(engine)
        self._lane: Lane | None = None

    async def __aenter__(self) -> Self:
        await self._portal.start()
        self._lane = self._portal.lane("control")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._portal.aclose()

    @property
    def _open(self) -> Lane:
        if self._lane is None:
            name = type(self).__name__
            raise RuntimeError(f"use it as: async with {name}(queue, engine) as {name.lower()}")
        return self._lane

    async def _run(self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        with named_errors(self._table, self._portal.sync_engine):
            return await self._open.run(operation, *args, **kwargs)
