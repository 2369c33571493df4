"""How many tasks a queue should claim next: pure arithmetic over what its slots can do."""

from __future__ import annotations

HORIZON = 0.1
"""Seconds of work to hold in memory beyond the free slots. With no-op handlers that is the whole prefetch, which makes
batches big; with handlers of a second it is a task or two, which leaves the rest to other workers."""

_WEIGHT = 0.3
"""Share of the newest measurement in the mean; a change of load is followed within about five claims."""


class Demand:
    """Watches how long handlers take and says how many tasks to claim."""

    def __init__(self, concurrency: int, prefetch: int, batch: int, per_slot: int = 1) -> None:
        self.per_slot = per_slot
        """How many tasks one call of a handler takes: the largest batch that the queue was seen to hold."""
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._batch = batch
        self._mean: float | None = None

    def observe(self, tasks: int, seconds: float) -> None:
        """So many tasks took so many seconds of their slots together."""
        if tasks:
            mean = seconds / tasks
            self._mean = mean if self._mean is None else self._mean + _WEIGHT * (mean - self._mean)

    @property
    def ahead(self) -> int:
        """How many tasks may wait in memory for a slot; 0 until something was measured."""
        if self._mean is None:
            return 0
        by_pace = self._concurrency * HORIZON / max(self._mean, 1e-6)
        ahead = min(self._prefetch, int(by_pace))
        return -(-ahead // self.per_slot) * self.per_slot

    def next_claim(self, free: int, waiting: int) -> int:
        """How many tasks to claim now; 0: enough wait. A claim is worth its round trip at half of what may wait."""
        free *= self.per_slot
        room = free + self.ahead - waiting
        if free > waiting or room * 2 >= self.ahead:
            return max(0, min(max(self._batch, self.per_slot), room))
        return 0
