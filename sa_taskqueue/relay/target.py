"""One broker as the relay sees it: opened when needed, left alone for a while when it cannot be reached."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from sa_taskqueue.publishers.base import Failed, HeldBack, Message, Outcome, Publisher
from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.runtime.faults import point

logger = logging.getLogger("sa_taskqueue.relay")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 15.0
"""Seconds between two tries to reach a broker. A RabbitMQ restart took 7 s here (2026-12-01)."""

CLOSE_PATIENCE = 5.0
"""Seconds a publisher may take to close."""


class Target:
    """Sends one batch at a time. `name` is the first pattern that leads here, for people."""

    def __init__(self, name: str, publisher: Publisher) -> None:
        self.name = name
        self._publisher = publisher
        self._one_at_a_time = asyncio.Lock()
        self._is_open = False
        self._pause = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE)
        self._down_until = 0.0
        self.down = False

    def __repr__(self) -> str:
        return f"{self.name} to {self._publisher!r}"

    @property
    def wait(self) -> float:
        """Seconds until it should be tried again; 0 while it is up."""
        return max(0.0, self._down_until - time.monotonic()) if self.down else 0.0

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome] | None:
        """What became of each message; None if the broker cannot be reached, and none of them is known to be there."""
        async with self._one_at_a_time:
            if self.wait or not await self._opened():
                return None
            point("relay.publish.before_send")
            try:
                outcomes = await self._publisher.publish(messages)
            except Exception as error:  # noqa: BLE001 - a third party's publisher may raise anything
                logger.warning("%r: %s: %s", self, type(error).__name__, error)
                outcomes = [Failed(f"{type(error).__name__}: {error}")] * len(messages)
            point("relay.publish.after_confirm")
            if all(isinstance(each, Failed | HeldBack) for each in outcomes) and not await self._opened(again=True):
                return None
            self._is_up()
            return outcomes

    async def close(self) -> None:
        """Close the publisher; what it raises does not matter any more."""
        try:
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self._publisher.close()
        except Exception as error:  # noqa: BLE001 - as above
            logger.info("%r was not closed: %s", self, error)

    async def _opened(self, *, again: bool = False) -> bool:
        """Whether the broker is connected; if nothing was confirmed it is asked again."""
        if self._is_open and not again:
            return True
        try:
            await self._publisher.open()
        except Exception as error:  # noqa: BLE001 - as above
            self._is_down(error)
            return False
        self._is_open = True
        return True

    def _is_down(self, error: Exception) -> None:
        delay = self._pause.delay()
        (logger.info if self.down else logger.warning)("%r: %s; next try in %.1f s", self, error, delay)
        self.down, self._is_open = True, False
        self._down_until = time.monotonic() + delay

    def _is_up(self) -> None:
        if self.down:
            logger.info("%r: it answers again", self)
        self.down = False
        self._pause.reset()
