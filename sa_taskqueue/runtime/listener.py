"""LISTEN on PostgreSQL: a hint that a queue has work comes within milliseconds; polling stays what finds the tasks."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.runtime.portal import open_link, without_pool
from sa_taskqueue.runtime.retrying import RECONNECT_BASE, RECONNECT_CAP, full_jitter

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

logger = logging.getLogger("sa_taskqueue.runtime")

SILENCE = 15.0
"""Seconds without a notification after which the connection is asked whether it still lives."""

ANSWER = 5.0
"""Seconds the server has to answer that, or to accept the LISTEN."""

_CHANNEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Listener:
    """Listens on one channel over a connection of its own, made again whenever it breaks.

    Notifications carry no content. `on_wake_up` is called for each of them, and after every connect, because what was
    sent before it is lost.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        channel: str,
        on_wake_up: Callable[[], None],
        *,
        silence: float = SILENCE,
        answer: float = ANSWER,
    ) -> None:
        self._channel = checked_channel(channel)
        self._on_wake_up = on_wake_up
        self._silence = silence
        self._answer = answer
        self._ears = _Ears(None)
        self._loop = asyncio.get_running_loop()
        self._link = open_link(without_pool(engine), "listener", self._prepare)

    async def run(self) -> None:
        """Listen until cancelled; returns at once, with a log line, if the driver cannot."""
        failures = 0
        try:
            while True:
                try:
                    await self._hear()
                    failures = 0
                except NotImplementedError as reason:
                    logger.info("no LISTEN: %s; the worker polls", reason)
                    return
                except Exception as error:  # noqa: BLE001  drivers raise their own errors here, and polling goes on
                    delay = full_jitter(failures, RECONNECT_BASE, RECONNECT_CAP)
                    failures += 1
                    logger.warning("the listener lost its connection (%s); next try in %.2f s", error, delay)
                    await self._link.discard()
                    await asyncio.sleep(delay)
        finally:
            await self._link.close()

    async def _hear(self) -> None:
        """One notification, one silence with its check, or one connect."""
        if not self._link.is_open:
            await self._link.call(_ask, self._answer)
            self._on_wake_up()
        elif not await self._link.call(self._wait):
            await self._link.call(_ask, self._answer)

    def _prepare(self, connection: Connection) -> None:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        self._ears = ears_of(connection)
        self._ears.listen(connection, self._channel)

    def _wait(self, _: Connection) -> bool:
        """Whether a notification came. It is passed on from here, because the way back of a call is longer."""
        heard = self._ears.wait(self._silence)
        if heard:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the listener was left behind at the end
                self._loop.call_soon_threadsafe(self._on_wake_up)
        return heard


class _Ears:
    """How one driver hears notifications, for psycopg's sync connection: the base of the others."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def listen(self, connection: Connection, channel: str) -> None:
        """Subscribe."""
        connection.exec_driver_sql(f'LISTEN "{channel}"')

    def wait(self, seconds: float) -> bool:
        """Whether a notification came within that time."""
        return any(True for _ in self._driver.notifies(timeout=seconds, stop_after=1))


class _AsyncPsycopgEars(_Ears):
    def wait(self, seconds: float) -> bool:
        from sqlalchemy.util import await_only

        async def heard() -> bool:
            return bool([each async for each in self._driver.notifies(timeout=seconds, stop_after=1)])

        return await_only(heard())


class _AsyncpgEars(_Ears):
    def listen(self, connection: Connection, channel: str) -> None:  # noqa: ARG002 - asyncpg has a method for it
        from sqlalchemy.util import await_only

        self._heard = asyncio.Event()
        self._driver.add_termination_listener(lambda *_: self._heard.set())
        await_only(self._driver.add_listener(channel, lambda *_: self._heard.set()))

    def wait(self, seconds: float) -> bool:
        from sqlalchemy.util import await_only

        async def heard() -> bool:
            try:
                async with asyncio.timeout(seconds):
                    await self._heard.wait()
            except TimeoutError:
                return False
            self._heard.clear()
            return not self._driver.is_closed()

        return await_only(heard())


def ears_of(connection: Connection) -> _Ears:
    """The right ears for the connection's driver. NotImplementedError: it has none that could be waited for."""
    driver: Any = connection.connection.driver_connection
    notifies = getattr(driver, "notifies", None)
    if inspect.isgeneratorfunction(notifies):
        return _Ears(driver)
    if inspect.isasyncgenfunction(notifies):
        return _AsyncPsycopgEars(driver)
    if hasattr(driver, "add_listener"):
        return _AsyncpgEars(driver)
    raise NotImplementedError(f"the driver {connection.dialect.driver} has no notifications")


def checked_channel(channel: str) -> str:
    """The name, if it can be quoted into LISTEN and is not cut by PostgreSQL; InvalidSetting otherwise."""
    if not _CHANNEL.fullmatch(channel):
        allowed = "1 to 63 of the characters A-Z a-z 0-9 _, not starting with a digit"
        raise InvalidSetting(setting="channel", value=channel, allowed=allowed)
    return channel


def _ask(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT 1")
