"""A contender that holds its tasks by a strategy of choice, and counts the statements that it sends."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, event

from benchmarks.contender import Done, Order
from benchmarks.plain.base import NAME, QUEUE
from benchmarks.tables import BenchEffect, BenchReservation, BenchTask, make_engine
from sa_taskqueue import BatchContext, TaskContext, TaskQueue, Worker
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.worker.settings import DEFAULT_CONCURRENCY

RANGE = 100
"""Tasks that the range handler takes at most."""


class Sent:
    """Statements, savepoints and the ends of transactions, as SQLAlchemy sends them; BEGIN goes along with the first.

    What runs in AUTOCOMMIT has no end of its own. One execution of many parameter sets counts once.
    """

    def __init__(self, engine: Engine) -> None:
        self._numbers = itertools.count()  # connections are used in several threads; `next` is atomic
        event.listen(engine, "before_cursor_execute", self._statement)
        event.listen(engine, "commit", self._end)
        event.listen(engine, "rollback", self._end)

    def so_far(self) -> int:
        return next(self._numbers)

    def _statement(self, *_: Any) -> None:
        next(self._numbers)

    def _end(self, connection: Connection) -> None:
        if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
            next(self._numbers)


def strategy(order: Order) -> Callable[[], Done]:
    """A worker process with the order's strategy and handler."""
    engine = make_engine(order.url, synchronous=order.synchronous)
    queue = TaskQueue(BenchTask, default_queue=QUEUE, reservations=BenchReservation)
    HANDLERS[order.work](queue)

    def go() -> Done:
        sent = Sent(engine)
        reservation = STRATEGIES[order.reservation]()
        queues = {QUEUE: DEFAULT_CONCURRENCY}
        worker = Worker(queue, engine, queues=queues, batch=order.batch, drain=True, reservation=reservation)
        worker.run()
        return Done(worker.counts.completed, statements=sent.so_far())

    return go


def add_noop(queue: TaskQueue) -> None:
    @queue.task(name=NAME)
    def noop(order_id: int, note: str) -> None:
        """Do nothing."""


def add_insert(queue: TaskQueue) -> None:
    @queue.task(name=NAME)
    def insert(context: TaskContext, order_id: int, note: str) -> None:  # noqa: ARG001  (the body's fields)
        context.session.add(BenchEffect(order_id=order_id))


@dataclass(frozen=True)
class Item:
    """The fields of one task of the range handler."""

    order_id: int
    note: str


def add_range(queue: TaskQueue) -> None:
    @queue.task(name=NAME, batch=RANGE)
    def insert_all(context: BatchContext, items: list[Item]) -> None:
        context.session.add_all(BenchEffect(order_id=item.order_id) for item in items)


HANDLERS: dict[str, Callable[[TaskQueue], None]] = {"noop": add_noop, "insert": add_insert, "range": add_range}
