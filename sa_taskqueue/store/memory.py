"""How far a worker has claimed in one queue, so that its next claim need not walk over dead rows.

While an old snapshot is open anywhere, PostgreSQL keeps the index entries of rows that left the queue, and every claim
from the start of the index walks over all of them: 14,000 dead entries cost 8 ms, 800,000 cost 250 ms (2026-11-30).
A claim from the remembered positions starts behind them.

What may lie before a position: a row that committed late, a row that another worker had locked and let go of, a row
whose priority was raised, and every new row after the database's clock was set back. So now and then a claim looks
back a few seconds, and now and then it scans from the start.
"""

from __future__ import annotations

import datetime as dt
import enum
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

MOST_POSITIONS = 8
"""Each position adds a range: a claim of nothing took 0.3 to 0.8 ms without, 1.2 to 2.1 ms with eight (2026-11-30)."""

LOOK_BACK = 5.0
"""Seconds: transactions that enqueue rarely last longer; the full scan finds what longer ones store."""

SHORTEST_PAUSE = 1.0
"""Seconds between two look-backs, or two full scans, that take no time."""

PAUSE_PER_SECOND = 19.0
"""A scan of one second is followed by so many without: each kind takes at most 5 % of the worker's time."""

_FIRST = (-(2**15), dt.datetime(1970, 1, 1, tzinfo=dt.UTC), UUID(int=0))
_END = 2**15 - 1


class Reach(enum.Enum):
    """From where a claim scans."""

    POSITION = enum.auto()
    LOOK_BACK = enum.auto()
    START = enum.auto()


class Position(NamedTuple):
    """A place in the order of the claim."""

    priority: int
    ready_at: dt.datetime
    id: UUID


class ClaimMemory:
    """The positions up to which one worker has claimed one queue: the last row it took of each priority."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._positions: dict[int, Position] = {}
        self._next = {Reach.START: 0.0, Reach.LOOK_BACK: 0.0}

    def reach(self) -> Reach:
        """From where the next claim should scan."""
        now = self._clock()
        if not self._positions or now >= self._next[Reach.START]:
            return Reach.START
        return Reach.LOOK_BACK if now >= self._next[Reach.LOOK_BACK] else Reach.POSITION

    def ranges(self, reach: Reach) -> dict[str, Any]:
        """The parameters of a claim from the positions: where each range begins, and before which priority it ends."""
        starts = [_FIRST, *sorted(self._positions.values())]
        priorities, moments, ids = (list(column) for column in zip(*starts, strict=True))
        return {
            "low_priority": priorities,
            "low_ready_at": moments,
            "low_id": ids,
            "end_priority": [*priorities[1:], _END],
            "look_back": LOOK_BACK if reach is Reach.LOOK_BACK else 0.0,
        }

    def claimed(self, reach: Reach, taken: Sequence[Position], *, full: bool, started: float) -> None:
        """Remember what a claim took, in its order; `full` if it took as many as it was allowed."""
        now = self._clock()
        if reach is not Reach.POSITION:
            pause = max(SHORTEST_PAUSE, PAUSE_PER_SECOND * (now - started))
            self._next[reach] = now + pause
        for position in taken:
            known = self._positions.pop(position.priority, position)
            self._positions[position.priority] = max(known, position)
        if full and taken:
            # More may follow right behind the last row, also where that is before what was known.
            self._positions[taken[-1].priority] = taken[-1]
        while len(self._positions) > MOST_POSITIONS:
            del self._positions[next(iter(self._positions))]
