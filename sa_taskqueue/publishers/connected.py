"""What the publishers with a connection share: making it, losing it, and the bounded time of a call."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Sequence
from typing import Any

from sa_taskqueue.exceptions import BrokerUnavailable
from sa_taskqueue.publishers.address import Address
from sa_taskqueue.publishers.base import Failed, Message, Outcome
from sa_taskqueue.publishers.deadline import Deadline
from sa_taskqueue.publishers.rounds import Together, in_rounds, one_by_one

logger = logging.getLogger("sa_taskqueue.publishers")

DEFAULT_TIMEOUT = 30.0
"""Half of the default lease of 60 s, so that a slow broker does not cost the relay its lease."""

_CLOSING = 5.0
"""Seconds for a client to say goodbye to a broker that may be gone."""


class ConnectedPublisher:
    """Connects at the first need and again after a loss; subclasses say how."""

    together: Together = staticmethod(one_by_one)

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self.address = Address(url, options)
        self.timeout = self.address.options.seconds("timeout", DEFAULT_TIMEOUT)
        self._lock = asyncio.Lock()
        self._lost = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address.shown})"

    async def open(self) -> None:
        """Connect. BrokerUnavailable if that cannot be done within the time of a call."""
        await self._connected(Deadline(self.timeout))

    async def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        if not messages:
            return []
        deadline = Deadline(self.timeout)
        try:
            await self._connected(deadline)
        except BrokerUnavailable as error:
            return [Failed(str(error))] * len(messages)
        outcomes = await in_rounds(messages, functools.partial(self._round, deadline), together=self.together)
        # A call that ran out of time may have left answers behind, which must not be taken for those of the next.
        if self._lost or deadline.missed in outcomes:
            await self.close()
        return outcomes

    async def close(self) -> None:
        async with self._lock:
            await self._quietly_disconnect()

    def lost(self, error: BaseException) -> Failed:
        """Note that the connection has to be made anew; what becomes of the message that met the error."""
        self._lost = True
        return self.failed(error)

    def failed(self, error: BaseException) -> Failed:
        return Failed(self.address.hide(f"{type(error).__name__}: {error}"))

    async def _round(self, deadline: Deadline, messages: Sequence[Message]) -> Sequence[Outcome]:
        if self._lost or not deadline.left:
            return [deadline.missed if not deadline.left else Failed("the connection was lost")] * len(messages)
        return await self.send(messages, deadline)

    async def _connected(self, deadline: Deadline) -> None:
        async with self._lock:
            if not self._lost:
                return
            await self._quietly_disconnect()
            try:
                async with asyncio.timeout(deadline.left):
                    await self.connect(deadline)
            except TimeoutError:
                reason = f"no answer within {self.timeout:g} s"
                raise BrokerUnavailable(broker=self.address.shown, reason=reason) from None
            except Exception as error:  # noqa: BLE001 - each client has errors of its own; without the cause, whose
                # text may hold the password
                raise BrokerUnavailable(broker=self.address.shown, reason=self.failed(error).reason) from None
            self._lost = False

    async def _quietly_disconnect(self) -> None:
        self._lost = True
        try:
            async with asyncio.timeout(_CLOSING):
                await self.disconnect()
        except Exception as error:  # noqa: BLE001 - a connection that is given up cannot fail any more
            logger.debug("closing %s: %s", self.address.shown, self.failed(error).reason)

    async def connect(self, deadline: Deadline) -> None:
        """Make the connection; whatever it raises means that the broker is not there."""
        raise NotImplementedError

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        """Send a round, in which no two messages of a key need to wait for each other."""
        raise NotImplementedError

    async def disconnect(self) -> None:
        """Free what `connect` made, also where it failed half-way."""
        raise NotImplementedError
