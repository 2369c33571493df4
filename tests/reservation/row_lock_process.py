"""A worker that is to be killed: ``python -m tests.reservation.row_lock_process URL [count]``; its handler hangs."""

from __future__ import annotations

import sys
import threading

from sqlalchemy import create_engine

from sa_taskqueue import RowLock, TaskContext, TaskQueue, Worker
from tests.models import CrashNote, Effect, Task

queue = TaskQueue(Task, crash_notes=CrashNote)


@queue.task
def work(context: TaskContext) -> None:
    """Write an effect, tell that it is written, and wait to be killed."""
    context.session.add(Effect(task_id=str(context.task.id)))
    context.session.flush()
    print("started", flush=True)
    threading.Event().wait(300)


if __name__ == "__main__":
    count = "count" in sys.argv[2:]
    Worker(queue, create_engine(sys.argv[1]), reservation=RowLock(count_crashes=count)).run()
