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
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from benchmarks.cpu import own_seconds, resident_mebibytes
from benchmarks.plain.base import NAME, QUEUE
from benchmarks.tables import MODELS, Synchronous, make_engine, plain_queue


@dataclass(frozen=True)
class Order:
    """What a contender is to do."""

    kind: str
    """``product``, ``floor`` or ``strategy``."""
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
    reservation: str = "lease"
    """How tasks are held (strategy only)."""
    work: str = "noop"
    """What the handler does (strategy only)."""


@dataclass
class Done:
    """What was done: tasks whose end is stored, memory at the numbers asked for, statements sent where counted."""

    done: int
    memory: dict[int, float] = field(default_factory=dict)
    statements: int = 0


@dataclass
class Finish:
    """What it took; times are monotonic seconds, which all processes of a machine share."""

    started: float
    ended: float
    done: int
    cpu: float
    memory: dict[int, float]
    statements: int


def product(order: Order) -> Callable[[], Done]:
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

    def go() -> Done:
        queues = {QUEUE: DEFAULT_CONCURRENCY}
        worker = Worker(queue, engine, queues=queues, batch=order.batch, drain=True, max_tasks=order.max_tasks)
        worker.run()
        return Done(worker.counts.completed, memory)  # what is stored, not what was run

    return go


def floor(order: Order) -> Callable[[], Done]:
    """The same work by plain SQL."""
    queue = plain_queue(make_engine(order.url, synchronous=order.synchronous), order.table)
    return lambda: Done(queue.drain(order.batch, delete=order.delete))


def strategy(order: Order) -> Callable[[], Done]:
    """A worker process whose strategy and handler are named."""
    from benchmarks.holding import strategy as prepare  # it needs the library, which the floor does not pay for

    return prepare(order)


KINDS: dict[str, Callable[[Order], Callable[[], Done]]] = {"product": product, "floor": floor, "strategy": strategy}


def main(order: dict[str, Any]) -> None:
    run = KINDS[order["kind"]](Order(**{**order, "memory_at": tuple(order.get("memory_at", ()))}))
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, started = own_seconds(), time.monotonic()
    done = run()
    finish = Finish(started, time.monotonic(), done.done, own_seconds() - cpu, done.memory, done.statements)
    print(json.dumps(asdict(finish)), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
