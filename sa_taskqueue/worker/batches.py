"""Batches that wait for a slot: which tasks run together, and for how long a batch that is not full waits for more.

The rule of company: tasks run together in their first attempt only, and only if they have another one left. A batch
whose handler raised says nothing about its tasks, so each goes on alone: the bad one ends by its own error, the good
ones wait for no one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sa_taskqueue.worker.held import HeldBatch, HeldTask, Unit

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition


def runs_alone(task: HeldTask) -> bool:
    """Whether the task is kept apart: an attempt or a worker has ended badly, or this is the last attempt."""
    claimed = task.claimed
    return claimed.attempt > 1 or claimed.crashes > 0 or claimed.max_attempts <= 1


class Forming:
    """The batches of one queue's line that still take tasks. Every method under the lock of the line."""

    def __init__(self, line: deque[Unit]) -> None:
        self.more = 0
        """How many more tasks wait than the line has entries."""
        self._line = line
        self._open: dict[TaskDefinition[..., Any], HeldBatch] = {}
        self._patient: set[HeldBatch] = set()

    def add(self, definition: TaskDefinition[..., Any], tasks: Sequence[HeldTask], *, patient: bool) -> list[HeldBatch]:
        """Put each task into a batch; the new batches which are not in the line, for their handler waits for more."""
        waiting = []
        for task in tasks:
            if runs_alone(task):
                self._line.append(HeldBatch(definition, [task]))
                continue
            batch = self._open.get(definition)
            if batch is None:
                batch = self._open[definition] = HeldBatch(definition, [])
                if patient and definition.max_wait:
                    self._patient.add(batch)
                    waiting.append(batch)
                else:
                    self._line.append(batch)
                    self.more -= 1
            batch.members.append(task)
            self.more += 1
            if len(batch.members) == definition.batch:
                del self._open[definition]
                self.release(batch)
        return waiting

    def release(self, batch: HeldBatch) -> None:
        """Let the batch start: it is full, or has waited long enough. It takes more tasks until it is started."""
        if batch in self._patient:
            self._patient.discard(batch)
            self._line.append(batch)
            self.more -= 1

    def release_all(self) -> None:
        """Let all start."""
        for batch in list(self._patient):
            self.release(batch)

    def started(self, batch: HeldBatch) -> None:
        """The batch has left the line."""
        self.more -= len(batch.members) - 1
        if self._open.get(batch.definition) is batch:
            del self._open[batch.definition]

    def clear(self) -> None:
        """The line was emptied."""
        self.more = 0
        self._open.clear()


def in_units(tasks: Sequence[HeldTask]) -> Iterator[Unit]:
    """What is run one after the other of tasks that were claimed by one transaction, whose handlers are known."""
    batches: dict[TaskDefinition[..., Any], HeldBatch] = {}
    units: list[Unit] = []
    for task in tasks:
        definition = task.definition
        if definition is None or definition.batch is None:
            units.append(task)
            continue
        batch = None if runs_alone(task) else batches.get(definition)
        if batch is None or len(batch.members) >= definition.batch:
            batch = HeldBatch(definition, [])
            units.append(batch)
            if not runs_alone(task):
                batches[definition] = batch
        batch.members.append(task)
    return iter(units)
