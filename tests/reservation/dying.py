"""A worker process that its test or its task kills: ``python -m tests.reservation.dying URL STRATEGY [count]``.

It takes one task at a time. A handler that is given a negative number kills the process; the others never return.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from sqlalchemy import create_engine

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.worker import Worker
from tests.models import CrashNote, Task
from tests.reservation.models import Reserved

LEASE = 2.0
MAX_CRASHES = 2

queue = TaskQueue(Task, reservations=Reserved, crash_notes=CrashNote)


@queue.task
def work(n: int) -> None:
    print("started", n, flush=True)
    if n < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait(600)


if __name__ == "__main__":
    strategy = STRATEGIES[sys.argv[2]]
    Worker(
        queue,
        create_engine(sys.argv[1]),
        queues={"default": 1},
        reservation=strategy(count_crashes=True) if "count" in sys.argv[3:] else strategy(),
        lease=LEASE,
        max_crashes=MAX_CRASHES,
        drain=True,
    ).run()
