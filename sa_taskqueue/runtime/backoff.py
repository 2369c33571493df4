"""How long an idle queue sleeps between two looks at the database."""

from __future__ import annotations

import random


class Backoff:
    """Doubles from `shortest` to `longest` seconds while nothing is found; jitter keeps workers apart."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = longest
        self._next = shortest

    def reset(self) -> None:
        """Something was found: begin at the shortest again."""
        self._next = self._shortest

    def delay(self) -> float:
        """Seconds to sleep now; the next one is twice as long."""
        delay, self._next = self._next, min(self._longest, self._next * 2)
        return delay * random.uniform(0.75, 1.25)  # noqa: S311 - jitter needs no secrecy
