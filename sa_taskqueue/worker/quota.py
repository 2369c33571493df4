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

    def take(self, wanted: int) -> int:
        """Take so many before the claim is sent, or as many as are left."""
        with self._lock:
            if self._left is None:
                return wanted
            taken = min(wanted, self._left)
            self._left -= taken
            self._in_flight += taken
            return taken

    def answered(self, taken: int, found: int) -> None:
        """The claim of so many has found so many."""
        with self._lock:
            if self._left is not None:
                self._in_flight -= taken
                self._left += taken - found
