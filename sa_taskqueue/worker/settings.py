"""The settings of a worker, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.runtime.holder import between, check_holder
from sa_taskqueue.validation import check_queue

DEFAULT_CONCURRENCY = 10

DAY = 86_400.0

RECYCLE = 75
"""Exit code that asks to be started again: abandoned threads passed their limit. EX_TEMPFAIL of sysexits.h."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSettings:
    """Seconds are real numbers of seconds; counts are whole numbers.

    InvalidSetting names what is out of range, InvalidName a queue in which nothing can be enqueued.
    """

    queues: Mapping[str, int]
    """Queues to serve, each with the number of handlers that run at once."""
    name: str
    """Stored in `reserved_by`, at most 200 characters."""
    lease: float = 60.0
    """How long a dead worker's tasks stay taken; how often leases that have ended are looked for. The first has no
    effect with `RowLock`, whose tasks are free as soon as the server knows that the worker is dead."""
    grace: float = 30.0
    """How long running handlers may go on after the first stop signal."""
    drain: bool = False
    """End when nothing is due and nothing runs. Tasks scheduled for later, retries among them, are left."""
    max_tasks: int | None = None
    """End after so many claimed tasks."""
    max_crashes: int = 3
    batch: int = 100
    """Tasks per claim and per finish at most. 100 costs 6 % of the rate of 1,000 and locks a tenth of the rows."""
    prefetch: int = 200
    """Claimed tasks of one queue that may wait in memory, if handlers are fast enough to start them within 0.1 s. No
    effect with `RowLock`."""
    poll_min: float = 0.1
    poll_max: float = 2.0
    """An idle queue looks again after `poll_min`, then ever later up to `poll_max`; a wake-up ends the sleep."""
    unknown_delay: float = 15.0
    """How long a task of an unknown name waits before the next look."""
    unknown_after: float = DAY
    """When a task that nobody knew becomes FAILED with `unknown_task`: a deployment that was rolled back overnight
    has a day."""
    max_abandoned: int = 5
    """Sync handlers that may hang after their timeout before the worker asks to be started again (exit code 75)."""

    def __post_init__(self) -> None:
        if not self.queues:
            raise InvalidSetting(setting="queues", value=dict(self.queues), allowed="at least one queue")
        check_holder(self.name)
        for queue, concurrency in self.queues.items():
            check_queue(queue)
            between(f"queues[{queue!r}]", concurrency, 1, 1_000)
        between("lease", self.lease, 1.0, DAY)
        between("grace", self.grace, 0.0, DAY)
        between("max_crashes", self.max_crashes, 1, 1_000)
        between("batch", self.batch, 1, 1_000)
        between("prefetch", self.prefetch, 0, 10_000)
        between("poll_min", self.poll_min, 0.001, 3_600.0)
        between("poll_max", self.poll_max, self.poll_min, 3_600.0)
        between("unknown_delay", self.unknown_delay, 0.0, DAY)
        between("unknown_after", self.unknown_after, 0.0, 366 * DAY)
        between("max_abandoned", self.max_abandoned, 0, 1_000)
        if self.max_tasks is not None:
            between("max_tasks", self.max_tasks, 1, 10**12)


class WorkerOptions(TypedDict, total=False):
    """The settings that `Worker` takes by keyword and hands on, so that type checkers know them."""

    lease: float
    grace: float
    drain: bool
    max_tasks: int | None
    max_crashes: int
    batch: int
    prefetch: int
    poll_min: float
    poll_max: float
    unknown_delay: float
    unknown_after: float
    max_abandoned: int
