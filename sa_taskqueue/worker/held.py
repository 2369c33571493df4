"""What this worker holds: every claimed task until its finish is committed, and until when it is trusted."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskDefinition
    from sa_taskqueue.store import Claimed, Pair


class HeldTask:
    """One claimed task. `deadline` and `lease` are written by the renewal, the rest by whoever runs the task."""

    __slots__ = ("_event", "claimed", "deadline", "definition", "finishing", "lease", "lost")

    def __init__(self, claimed: Claimed, deadline: float, lease: float) -> None:
        self.claimed = claimed
        self.definition: TaskDefinition[..., Any] | None = None
        """The registered handler, set by the queue's lane; None for a name this worker does not know."""
        self.deadline = deadline
        """Monotonic seconds, safety margin already taken off: after it the task is not started."""
        self.lease = lease
        """Seconds by which the next renewal holds it; `extend` raises it."""
        self.lost = False
        """Whether the lease was lost, or given up after a timeout."""
        self.finishing = False
        """Its finish is on its way: a renewal that does not find the row has not lost it."""
        self._event: threading.Event | None = None

    @property
    def pair(self) -> Pair:
        """As every guarded write names it."""
        return self.claimed.id, self.claimed.epoch

    @property
    def members(self) -> Sequence[HeldTask]:
        """The tasks that one call of the handler runs: this one."""
        return (self,)

    @property
    def handler(self) -> TaskDefinition[..., Any]:
        """The registered handler of a task that was given to a slot."""
        if self.definition is None:
            raise LookupError(self.claimed.name)
        return self.definition

    def tell(self, event: threading.Event) -> None:
        """Have this event set when the task is lost, as that of all tasks of one batch."""
        with _event_lock:
            self._event = event
            if self.lost:
                event.set()

    def lost_event(self) -> threading.Event:
        """The event a handler waits on. Made when asked for, because it costs more than a claim's share."""
        with _event_lock:
            if self._event is None:
                self._event = threading.Event()
                if self.lost:
                    self._event.set()
            return self._event

    def lose(self) -> None:
        """Tell the handler that the task is no longer its own."""
        with _event_lock:
            self.lost = True
            if self._event is not None:
                self._event.set()


class HeldBatch:
    """Tasks of one name that one call of a range handler runs. For the slots it is what a `HeldTask` is."""

    __slots__ = ("definition", "members")

    def __init__(self, definition: TaskDefinition[..., Any], members: list[HeldTask]) -> None:
        self.definition = definition
        self.members = members

    @property
    def handler(self) -> TaskDefinition[..., Any]:
        """The registered handler."""
        return self.definition

    @property
    def lost(self) -> bool:
        """Whether one of the tasks is lost: their work is one transaction."""
        return any(task.lost for task in self.members)

    def lose(self) -> None:
        """Tell the handler that the tasks are no longer its own."""
        for task in self.members:
            task.lose()

    def lost_event(self) -> threading.Event:
        """The event a handler waits on: set when one of the tasks is lost."""
        event = threading.Event()
        for task in self.members:
            task.tell(event)
        return event


Unit: TypeAlias = HeldTask | HeldBatch
"""What one call of a handler runs."""

_event_lock = threading.Lock()


class HeldTasks:
    """The held tasks of one worker, by id. Every method may be called from every thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[UUID, HeldTask] = {}
        self.owns_write_lock = False
        """A handler's transaction holds SQLite's only write lock: nobody can take a task over meanwhile."""

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, claimed: Claimed, deadline: float, lease: float) -> HeldTask:
        """Hold one claimed task until `deadline` (monotonic, margin taken off)."""
        return self.add_all([claimed], deadline, lease)[0]

    def add_all(self, claims: Sequence[Claimed], deadline: float, lease: float) -> list[HeldTask]:
        """Hold one claim's tasks, which share their deadline."""
        tasks = [HeldTask(claimed, deadline, lease) for claimed in claims]
        with self._lock:
            self._tasks.update((task.claimed.id, task) for task in tasks)
        return tasks

    def remove_all(self, pairs: Iterable[Pair]) -> None:
        """Forget tasks that are finished, given back or lost; one that was claimed again since is still held."""
        with self._lock:
            for pair in pairs:
                if self._held(pair) is not None:
                    del self._tasks[pair[0]]

    def pairs(self) -> list[Pair]:
        """(id, epoch) of every held task that is not lost."""
        return [pair for pairs in self.by_lease().values() for pair in pairs]

    def by_lease(self) -> dict[float, list[Pair]]:
        """The pairs grouped by the seconds for which they are to be renewed."""
        groups: dict[float, list[Pair]] = {}
        with self._lock:
            for task in self._tasks.values():
                if not task.lost:
                    groups.setdefault(task.lease, []).append(task.pair)
        return groups

    def renewed(self, ids: Collection[UUID], until: float) -> None:
        """Trust these tasks until `until` (monotonic at sending + lease - margin); a deadline never moves back."""
        with self._lock:
            for task_id in ids:
                task = self._tasks.get(task_id)
                if task is not None and task.deadline < until:
                    task.deadline = until

    def finish(self, tasks: Sequence[HeldTask]) -> bool:
        """From here on a renewal that does not find the rows has not lost the tasks. False: one is lost already."""
        with self._lock:
            for task in tasks:
                task.finishing = not task.lost
            return all(task.finishing for task in tasks)

    def mark_lost(self, pair: Pair) -> HeldTask | None:
        """Mark a task as lost and tell its handler. None: it was forgotten, is being finished, or was lost before."""
        with self._lock:
            task = self._held(pair)
            if task is None or task.finishing or task.lost:
                return None
            task.lose()
            return task

    def expired(self, now: float) -> list[HeldTask]:
        """The tasks whose deadline has passed and which are neither lost nor being finished."""
        with self._lock:
            return [
                task for task in self._tasks.values() if task.deadline <= now and not task.lost and not task.finishing
            ]

    def _held(self, pair: Pair) -> HeldTask | None:
        """Under the lock: the task, if it is held under this epoch and not a later one of this worker's own."""
        task = self._tasks.get(pair[0])
        return task if task is not None and task.claimed.epoch == pair[1] else None
