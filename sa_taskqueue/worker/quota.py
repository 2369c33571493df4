"""`max_tasks` where every slot claims for itself."""

from __future__ import annotations

import threading


class Quota:
    """How many tasks may still be claimed; every method from every thread."""

    def __init__(self, left: int | None) -> None:
        self._left = left
        self._in_flight = 0
        self._lock = threading.Lock()

    @property
    def exhausted(self) -> bool:
        """Whether all have been claimed."""
        return self._left == 0 and not self._in_flight

    def take(self) -> bool:
        """Take one before the claim is sent; False: there is none left."""
        with self._lock:
            if self._left is None:
                return True
            if not self._left:
                return False
            self._left -= 1
            self._in_flight += 1
            return True

    def answered(self, *, found: bool) -> None:
        """The claim has been answered."""
        with self._lock:
            if self._left is not None:
                self._in_flight -= 1
                self._left += not found
