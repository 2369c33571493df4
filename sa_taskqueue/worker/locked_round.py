"""What one transaction of a strategy that claims in the work has claimed: run piece by piece, committed at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from sa_taskqueue.worker.batches import in_units
from sa_taskqueue.worker.ending import End, Ending, Ends
from sa_taskqueue.worker.finisher import Ended
from sa_taskqueue.worker.held import HeldBatch, HeldTask, Unit

if TYPE_CHECKING:
    from sa_taskqueue.worker.locked_work import LockedTask, LockedWork


class Round:
    """The tasks of one claim in the order in which they run, and how they have ended so far."""

    def __init__(self, work: LockedWork, tasks: Sequence[LockedTask]) -> None:
        self.units: list[Unit] = list(in_units(tasks))
        self._work = work
        self._tasks = tasks
        self._ended: dict[HeldTask, Ended] = {}

    def finish_one(self, ends: Ends, started: float) -> list[Ended]:
        """Commit the only task's outcome, or roll back."""
        task = self._tasks[0]
        end = ends[0] if isinstance(ends, list) else ends
        return [Ended(task, self._work.finish(task, end), time.monotonic() - started)]

    def add(self, unit: Unit, ends: Ends, started: float) -> bool:
        """A handler has ended. False: and with it the transaction, so that what ran before is undone and free."""
        stands = self._work.stands
        if not stands:
            self._ended = {task: one._replace(end=Ending.RELEASE) for task, one in self._ended.items()}
        each = cast("list[End]", ends) if isinstance(unit, HeldBatch) else [cast("End", ends)]
        seconds = (time.monotonic() - started) / len(each)
        for task, end in zip(unit.members, each, strict=True):
            self._ended[task] = Ended(task, end, seconds)
        return stands

    def finish(self) -> list[Ended]:
        """Commit the outcomes of all. What was not begun is free again with the end of the transaction."""
        return self._work.finish_all([self._ended.get(task, Ended(task, Ending.RELEASE, 0.0)) for task in self._tasks])


def all_of(unit: Unit, ending: Ending) -> Ends:
    """The same end for all tasks of the unit."""
    return [ending for _ in unit.members] if isinstance(unit, HeldBatch) else ending
