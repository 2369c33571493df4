"""A worker process that is killed by its test: ``python -m tests.reservation.dying URL STRATEGY``.

It takes one task whose handler says so and never returns.
"""

from __future__ import annotations

import sys
import threading

from sqlalchemy import create_engine

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import AdvisoryLock, ReservationTable
from sa_taskqueue.worker import Worker
from tests.models import Task
from tests.reservation.models import Reserved

LEASE = 2.0
STRATEGIES = {strategy.name: strategy for strategy in (AdvisoryLock, ReservationTable)}

queue = TaskQueue(Task, reservations=Reserved)


@queue.task
def work(n: int) -> None:
    print("started", n, flush=True)
    threading.Event().wait(600)


if __name__ == "__main__":
    Worker(
        queue, create_engine(sys.argv[1]), queues={"default": 1}, reservation=STRATEGIES[sys.argv[2]](), lease=LEASE
    ).run()
