"""Claims batches for all queues of one worker, on a lane of its own so that it overlaps the work and the finish."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sa_taskqueue import telemetry
from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.margins import safety_margin

if TYPE_CHECKING:
    from sa_taskqueue.reservation.base import Reservation
    from sa_taskqueue.runtime.lane import Lane
    from sa_taskqueue.store import Claimed
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.held import HeldTask, HeldTasks

logger = logging.getLogger("sa_taskqueue.worker")


class Claimer:
    """Takes tasks and registers them as held, with the deadline counted from before the claim was sent."""

    def __init__(
        self,
        lane: Lane,
        reservation: Reservation,
        held: HeldTasks,
        counts: Counts,
        *,
        lease: float,
        max_tasks: int | None,
    ) -> None:
        self._lane = lane
        self._reservation = reservation
        self._held = held
        self._counts = counts
        self._lease = lease
        self._trusted = lease - safety_margin(lease)
        self._left = max_tasks
        self._in_flight = 0

    @property
    def exhausted(self) -> bool:
        """Whether `max_tasks` have been claimed."""
        return self._left == 0 and not self._in_flight

    async def claim(self, queue: str, limit: int) -> Sequence[HeldTask]:
        """Up to `limit` tasks; none as well when the database cannot answer, which is logged."""
        limit = self._reserve(limit)
        claims: list[Claimed] = []
        sent_at = 0.0
        try:
            if limit:
                sent_at, claims = await self._lane.run(self._claim, queue, limit)
        except CommitUnknown:
            logger.warning(
                "queue %s: no answer to the COMMIT of a claim; what it took is free when its lease ends", queue
            )
        except DBAPIError as error:
            logger.warning("queue %s cannot be claimed from: %s", queue, error)
        finally:
            self._unreserve(limit - len(claims))
        if not claims:
            return ()
        point("claim.after_commit")
        self._counts.claimed += len(claims)
        if telemetry.listening():
            telemetry.emit(telemetry.TasksClaimed(queue, len(claims), time.monotonic() - sent_at))
        return self._held.add_all(claims, sent_at + self._trusted, self._lease)

    def _claim(self, connection: Connection, queue: str, limit: int) -> tuple[float, list[Claimed]]:
        point("claim.before_send")
        sent_at = time.monotonic()
        claims = self._reservation.claim(connection, queue, limit)
        if claims:
            point("claim.before_commit")
        return sent_at, claims

    def _reserve(self, limit: int) -> int:
        """Take the claim's share of `max_tasks` before it is sent: several queues claim at once."""
        if self._left is None:
            return limit
        limit = min(limit, self._left)
        self._left -= limit
        self._in_flight += 1
        return limit

    def _unreserve(self, unused: int) -> None:
        if self._left is not None:
            self._left += unused
            self._in_flight -= 1
