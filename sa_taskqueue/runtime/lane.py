"""A lane: one held connection that runs one store operation after the other, each as a transaction of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sa_taskqueue.adapters.base import Adapter, ErrorKind
from sa_taskqueue.exceptions import CommitUnknown, InvalidSetting
from sa_taskqueue.runtime.commit import transact
from sa_taskqueue.runtime.links import Link
from sa_taskqueue.runtime.retrying import Action, Failures

logger = logging.getLogger("sa_taskqueue.runtime")

P = ParamSpec("P")
R = TypeVar("R")


class Lane:
    """Runs operations one at a time on a connection that is opened at the first and kept.

    Between operations the connection is not in a transaction. Retryable errors are repeated at most five times, a lost
    connection is made again for as long as the caller waits. Cancelling a call cuts the connection: whether its
    transaction was committed is then unknown.
    """

    def __init__(self, name: str, link: Link, adapter: Adapter) -> None:
        self.name = name
        self._link = link
        self._adapter = adapter
        self._one_at_a_time = asyncio.Lock()
        self._prepared: Connection | None = None

    async def run(
        self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The operation's result, committed. CommitUnknown: nobody answered the COMMIT; look by id and epoch."""
        async with self._one_at_a_time:
            failures = Failures()
            while True:
                try:
                    return await self._link.call(self._transact, operation, args, kwargs)
                except CommitUnknown:
                    await self._link.discard()
                    raise
                except PoolTimeout as error:
                    raise InvalidSetting(setting="pool_size", value=str(error), reason=self._pool_too_small()) from error
                except (DBAPIError, OSError) as error:
                    await self._after(error, failures)

    async def run_repeatable(
        self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """As `run`, for an operation that may be committed twice without harm: an unanswered COMMIT repeats it."""
        while True:
            try:
                return await self.run(operation, *args, **kwargs)
            except CommitUnknown:
                logger.warning("lane %s: no answer to COMMIT, the operation is repeated", self.name)

    async def aclose(self) -> None:
        """Close the connection. It does not go back to the pool, because it carries the worker's settings."""
        async with self._one_at_a_time:
            await self._link.close()

    def _transact(
        self, connection: Connection, operation: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> R:
        return transact(connection, self._adapter, operation, *args, **kwargs)

    async def _after(self, error: DBAPIError | OSError, failures: Failures) -> None:
        """Wait as long as the failure asks for, or raise it."""
        kind = self._kind(error)
        action = failures.decide(kind)
        if action is Action.RAISE:
            raise error
        if action is Action.RECONNECT:
            await self._link.discard()
        delay = failures.delay(action)
        log = logger.warning if action is Action.RECONNECT else logger.info
        log("lane %s: %s (%s), next try in %.2f s", self.name, kind.name, error, delay)
        await asyncio.sleep(delay)

    def _kind(self, error: DBAPIError | OSError) -> ErrorKind:
        if isinstance(error, OSError) or not self._link.is_open:
            return ErrorKind.DISCONNECT
        return self._adapter.classify(error)

    def _pool_too_small(self) -> str:
        return f"no connection was free for the lane {self.name!r}: give the engine a larger pool_size or max_overflow"
