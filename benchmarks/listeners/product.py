"""``python -m benchmarks.listeners.product URL COUNT``: a worker that ends after COUNT tasks and prints the delays."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.plain.base import QUEUE
from benchmarks.tables import BenchTask, make_engine
from sa_taskqueue import TaskQueue, Worker

queue = TaskQueue(BenchTask, default_queue=QUEUE, notify=True)
delays: list[float] = []


@queue.task
async def trickle(sent: float) -> None:
    """Note the milliseconds since ``sent`` (monotonic seconds, one clock for all processes)."""
    delays.append((time.monotonic() - sent) * 1000)


def main(url: str, count: int) -> None:
    print("ready", flush=True)
    Worker(queue, make_engine(url), queues={QUEUE: 10}, max_tasks=count).run()
    print(json.dumps(delays), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
