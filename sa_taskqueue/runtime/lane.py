"""A lane: one held connection that runs one store operation after the other, each as a transaction of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sa_taskqueue import telemetry
from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import CommitUnknown, InvalidSetting
from sa_taskqueue.runtime.commit import transact
from sa_taskqueue.runtime.links import Link
from sa_taskqueue.runtime.retrying import Action, Failures

logger = logging.getLogger("sa_taskqueue.runtime")

P = ParamSpec("P")
R = TypeVar("R")

OPERATION_TIMEOUT = 30.0
"""Seconds after which an unanswered operation's connection is cut. The slowest of them, a full claim over 800,000 dead
rows, took 0.25 s (2026-11-30); MySQL's workers give up a lock after 2 s."""

FAILURES = (DBAPIError, OSError)
"""What an attempt can raise for reasons that may pass; TimeoutError and ConnectionError are OSErrors."""


class Lane:
    """Runs operations one at a time on a connection that is opened at the first and kept.

    Between operations the connection is not in a transaction. Cancelling a call cuts the connection: whether its
    transaction was committed is then unknown.
    """

    def __init__(self, name: str, link: Link, adapter: Adapter, *, timeout: float = OPERATION_TIMEOUT) -> None:
        self.name = name
        self.timeout = timeout
        self._link = link
        self._adapter = adapter
        self._one_at_a_time = asyncio.Lock()

    async def run(self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The operation's result, committed.

        Retryable errors repeat it at most five times; a lost connection is made again for as long as the caller waits.
        CommitUnknown: nobody answered the COMMIT; look by id and epoch.
        """
        failures = Failures()
        while True:
            try:
                return await self.attempt(operation, *args, **kwargs)
            except FAILURES as error:
                await self._wait_or_raise(error, failures)

    async def run_repeatable(
        self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """As `run`, for an operation that may be committed twice without harm: an unanswered COMMIT repeats it."""
        while True:
            try:
                return await self.run(operation, *args, **kwargs)
            except CommitUnknown:
                logger.warning("lane %s: no answer to COMMIT; the operation is repeated", self.name)

    async def attempt(self, operation: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """One try, without repetition. After DBAPIError and OSError nothing was committed."""

        def step(connection: Connection) -> R:
            return transact(connection, self._adapter, operation, *args, **kwargs)

        return await self._call(step)

    async def open(self) -> None:
        """Connect now instead of at the first operation, which does it where this fails, with more patience."""
        try:
            await self._call(Connection.rollback)
        except FAILURES as error:
            logger.warning("lane %s is not connected yet (%s)", self.name, error)

    def kind_of(self, error: DBAPIError | OSError) -> ErrorKind:
        """The kind of a failed attempt; whatever happens before there is a connection counts as a lost one."""
        if isinstance(error, OSError) or not self._link.is_open:
            return ErrorKind.DISCONNECT
        return self._adapter.classify(error)

    async def aclose(self) -> None:
        """Close the connection. It does not go back to the pool, because it carries the worker's settings."""
        async with self._one_at_a_time:
            await self._link.close()

    async def _call(self, step: Callable[[Connection], R]) -> R:
        async with self._one_at_a_time:
            try:
                return await self._link.call(step, self.timeout)
            except PoolTimeout as error:
                raise InvalidSetting(
                    setting="pool_size + max_overflow",
                    value=f"too small ({error})",
                    allowed=f"larger: no connection was free for the worker's {self.name}",
                ) from error
            except (CommitUnknown, OSError):
                await self._link.discard()
                raise
            except DBAPIError as error:
                if self.kind_of(error) is ErrorKind.DISCONNECT:
                    await self._link.discard()
                raise

    async def _wait_or_raise(self, error: DBAPIError | OSError, failures: Failures) -> None:
        kind = self.kind_of(error)
        action = failures.decide(kind)
        if action is Action.RAISE:
            raise error
        delay = failures.delay(action)
        if action is Action.RECONNECT:
            telemetry.emit(telemetry.ConnectionLost(self.name))
            logger.warning("lane %s lost its connection (%s); next try in %.2f s", self.name, error, delay)
        else:
            logger.info("lane %s: %s (%s); next try in %.2f s", self.name, kind.name, error, delay)
        await asyncio.sleep(delay)
