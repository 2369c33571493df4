"""A worker process that is killed in the middle of a batch: ``python -m tests.worker.range_process URL STRATEGY``.

Its handler does half of the work, says so, and never returns.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import create_engine

from sa_taskqueue import AdvisoryLock, BatchContext, Lease, ReservationTable, RowLock, TaskQueue, Worker
from tests.models import Effect, Task
from tests.reservation.models import Reserved

LEASE = 2.0
STRATEGIES: dict[str, Callable[[], Any]] = {
    "lease": Lease,
    "row-lock": lambda: RowLock(batch=10),
    "advisory-lock": AdvisoryLock,
    "reservation-table": ReservationTable,
}


@dataclass(frozen=True)
class Ref:
    n: int


def work_queue(after_half: Callable[[], object]) -> TaskQueue:
    """A task queue with the range handler, which calls this when half of its work is done."""
    queue = TaskQueue(Task, reservations=Reserved)

    @queue.task(name="index", batch=10, item=Ref)
    def index(context: BatchContext, items: list[Ref]) -> None:
        for done, item in enumerate(items):
            if done == len(items) // 2:
                context.session.flush()
                after_half()
            context.session.add(Effect(task_id="", note=str(item.n)))

    return queue


def _say_and_wait() -> None:
    print("half", flush=True)
    threading.Event().wait(600)


if __name__ == "__main__":
    Worker(
        work_queue(_say_and_wait),
        create_engine(sys.argv[1]),
        queues={"default": 1},
        reservation=STRATEGIES[sys.argv[2]](),
        lease=LEASE,
    ).run()
