"""One process of a race: it gets ready, says so, waits for the word to go, drains, and tells what it took.

``python -m benchmarks.contender '{"kind": "product", ...}'``; the fields are those of `Order`. It prints ``ready``,
waits for a line on its standard input, and prints one JSON object.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from benchmarks.cpu import own_seconds, resident_mebibytes
from benchmarks.plain.base import NAME, QUEUE
from benchmarks.tables import MODELS, Synchronous, make_engine, plain_queue


@dataclass(frozen=True)
class Order:
    """What a contender is to do."""

    kind: str
    """``product`` or ``floor``."""
    url: str
    table: str
    batch: int
    delete: bool = False
    max_tasks: int | None = None
    synchronous: Synchronous = "FULL"
    """SQLite's setting; the others ignore it."""
    handler: str = "sync"
    """Whether the product's handler is a plain function or a coroutine function (``async``)."""
    memory_at: tuple[int, ...] = ()
    """Numbers of finished tasks at which the resident memory is read (product only)."""


@dataclass
class Finish:
    """What it took; times are monotonic seconds, which all processes of a machine share."""

    started: float
    ended: float
    done: int
    cpu: float
    memory: dict[int, float]


def product(order: Order) -> Callable[[], tuple[int, dict[int, float]]]:
    """A worker process of the library with a handler that does nothing."""
    from sa_taskqueue import Status, TaskQueue, Worker  # not for the floor: it pays for nothing of the library
    from sa_taskqueue.worker.settings import DEFAULT_CONCURRENCY

    engine = make_engine(order.url, synchronous=order.synchronous)
    retention = {Status.COMPLETED: timedelta(0)} if order.delete else {}
    queue = TaskQueue(MODELS[order.table], default_queue=QUEUE, retention=retention)
    numbers = itertools.count(1)  # handlers run in several threads; `next` is atomic
    memory: dict[int, float] = {}

    def count() -> None:
        number = next(numbers)
        if number in order.memory_at:
            memory[number] = resident_mebibytes()

    def noop(order_id: int, note: str) -> None:  # noqa: ARG001  (the body's fields)
        count()

    async def async_noop(order_id: int, note: str) -> None:  # noqa: ARG001
        count()

    queue.task(name=NAME)(noop if order.handler == "sync" else async_noop)

    def go() -> tuple[int, dict[int, float]]:
        queues = {QUEUE: DEFAULT_CONCURRENCY}
        worker = Worker(queue, engine, queues=queues, batch=order.batch, drain=True, max_tasks=order.max_tasks)
        worker.run()
        return worker.counts.completed, memory  # what is stored, not what was run

    return go


def floor(order: Order) -> Callable[[], tuple[int, dict[int, float]]]:
    """The same work by plain SQL."""
    queue = plain_queue(make_engine(order.url, synchronous=order.synchronous), order.table)
    return lambda: (queue.drain(order.batch, delete=order.delete), {})


KINDS: dict[str, Callable[[Order], Callable[[], tuple[int, dict[int, float]]]]] = {"product": product, "floor": floor}


def main(order: dict[str, Any]) -> None:
    run = KINDS[order["kind"]](Order(**{**order, "memory_at": tuple(order.get("memory_at", ()))}))
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, started = own_seconds(), time.monotonic()
    done, memory = run()
    finish = Finish(started, time.monotonic(), done, own_seconds() - cpu, memory)
    print(json.dumps(asdict(finish)), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
