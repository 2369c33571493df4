"""What a worker has done since its start."""

from __future__ import annotations

from dataclasses import dataclass

from sa_taskqueue.states import Status


@dataclass(slots=True)
class Counts:
    """Tasks by what became of them. Written on the worker's loop only; may be read anywhere."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    retried: int = 0
    snoozed: int = 0
    released: int = 0
    """Given back without an attempt counted, at the worker's stop."""
    unknown: int = 0
    """Given back because this worker has no handler of that name."""
    lost: int = 0
    """Leases lost: nothing was recorded, whatever the handler did."""
    abandoned: int = 0
    """Threads given up because a sync handler did not end in time."""

    @property
    def ended(self) -> int:
        """Tasks whose handlers ran to an outcome that is stored."""
        return self.completed + self.failed + self.cancelled + self.retried + self.snoozed

    def settled(self, status: Status, *, count_attempt: bool) -> None:
        """One outcome was stored."""
        match status:
            case Status.COMPLETED:
                self.completed += 1
            case Status.FAILED:
                self.failed += 1
            case Status.CANCELLED:
                self.cancelled += 1
            case _ if count_attempt:
                self.retried += 1
            case _:
                self.snoozed += 1
