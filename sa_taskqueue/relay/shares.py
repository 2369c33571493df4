"""What a relay holds: shares of a claim, each for one broker, and the renewal of their leases."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from sa_taskqueue.exceptions import TaskQueueError
from sa_taskqueue.relay.target import Target
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.lane import Lane
from sa_taskqueue.runtime.margins import safety_margin
from sa_taskqueue.store import Pair

logger = logging.getLogger("sa_taskqueue.relay")

Renew = Callable[[Connection, Sequence[Pair]], Collection[UUID]]

RENEWALS_PER_LEASE = 4


class Share:
    """Rows (messages, or keys) held under their epochs until a deadline, by the monotonic clock, that is renewed."""

    def __init__(self, target: Target | None, epochs: dict[UUID, int], deadline: float) -> None:
        self.target = target
        self.epochs = epochs
        self.deadline = deadline
        self.size = len(epochs)

    @property
    def trusted(self) -> bool:
        """Whether nobody else can hold any of it."""
        return time.monotonic() < self.deadline


class Keeper:
    """Renews what is held, every quarter of the lease; what it cannot renew is not trusted in time and not sent.

    A renewal that misses a row proves nothing: our own mark may have it locked. So the deadline just stays.
    """

    def __init__(self, lane: Lane, lease: float) -> None:
        self._lane, self._lease = lane, lease
        self._held: dict[Share, Renew] = {}

    def until(self, sent_at: float) -> float:
        """The deadline of a claim or a renewal that was sent then."""
        return sent_at + self._lease - safety_margin(self._lease)

    def hold(self, share: Share, renew: Renew) -> None:
        """Renew it from now on."""
        self._held[share] = renew

    def let_go(self, share: Share) -> None:
        """Renew it no more."""
        self._held.pop(share, None)

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(self._lease / RENEWALS_PER_LEASE)
            try:
                await self.renew()
            except (SQLAlchemyError, OSError, TaskQueueError) as error:
                logger.warning("leases could not be renewed: %s", error)

    async def renew(self) -> None:
        """Renew everything held, in one transaction."""
        held = dict(self._held)
        if not held:
            return
        sent_at = time.monotonic()
        point("relay.renew.before_send")
        renewed = await self._lane.attempt(_renew_all, held)
        for share in held:
            if share.epochs.keys() <= renewed:
                share.deadline = max(share.deadline, self.until(sent_at))


def _renew_all(connection: Connection, held: dict[Share, Renew]) -> set[UUID]:
    pairs: dict[Renew, list[Pair]] = {}
    for share, renew in held.items():
        pairs.setdefault(renew, []).extend(share.epochs.items())
    return {each for renew, some in pairs.items() for each in renew(connection, some)}
