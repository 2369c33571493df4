"""A connection beside the worker's event loop, for the renewal: a handler that blocks the loop must not stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from sa_taskqueue.runtime.portal import Portal, without_pool

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

P = ParamSpec("P")
R = TypeVar("R")


class SideLane:
    """A lane with an event loop and a small engine of its own; made, used and closed in one thread.

    An async engine's pool belongs to the loop that used it first (asyncpg raises, asyncmy gets out of step), and a
    connection from the user's pool could be refused at the very moment a lease must be renewed.
    """

    def __init__(self, engine: Engine | AsyncEngine, *, timeout: float, autocommit: bool = False) -> None:
        self._loop = asyncio.new_event_loop()
        self._portal = Portal(without_pool(engine))
        try:
            self._loop.run_until_complete(self._portal.start())
        except BaseException:
            self._loop.close()
            raise
        self._lane = self._portal.lane("renewal", timeout=timeout, autocommit=autocommit)

    def attempt(self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the operation once and block until it is committed; errors as those of `Lane.attempt`."""
        return self._loop.run_until_complete(self._lane.attempt(operation, *args, **kwargs))

    def close(self) -> None:
        """Close the connection and the loop."""
        try:
            self._loop.run_until_complete(self._portal.aclose())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
