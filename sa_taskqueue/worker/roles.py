"""What the crew, the watchdog and the stop need of a queue's slots and lane, whatever the reservation strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sa_taskqueue.worker.held import HeldTask, Unit


class ServingLane(Protocol):
    """Sees to one queue until it is told to stop."""

    @property
    def at_rest(self) -> bool:
        """Whether nothing of this queue is being claimed, waits or runs here."""
        ...

    def wake(self) -> None:
        """There may be work: end the sleep. On the loop's thread."""
        ...

    def stop(self) -> None:
        """Claim no more."""
        ...

    async def run(self) -> None:
        """Serve until `stop`."""
        ...


class ServingSlots(Protocol):
    """Run the handlers of one queue; what runs where, and how it is ended. For the loop's thread."""

    abandoned: int

    @property
    def waiting(self) -> int: ...
    @property
    def at_rest(self) -> bool: ...
    def take_waiting(self) -> list[HeldTask]: ...
    def in_threads(self) -> Sequence[tuple[Any, Unit]]: ...
    def on_loop(self) -> list[Unit]: ...
    def cancel(self, task: Unit) -> None: ...
    def overdue(self, now: float) -> Sequence[tuple[Any, Unit]]: ...
    def abandon(self, thread: Any, task: Unit) -> bool: ...
    def close(self) -> None: ...
