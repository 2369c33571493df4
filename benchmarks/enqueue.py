"""``enqueue``: one task per unit of work, and many at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import sessionmaker

from benchmarks.plain.base import NAME, NOTE, QUEUE, Filling
from benchmarks.report import Result
from benchmarks.tables import BenchTask, PlainRow, empty, fresh_tables, plain_key, plain_queue
from sa_taskqueue import TaskQueue, TaskSession, enqueue_many

ONE_AIM = 0.9
MANY_AIM = 0.5

queue = TaskQueue(BenchTask, default_queue=QUEUE)


@queue.task(name=NAME)
def noop(order_id: int, note: str) -> None:
    """Never run here."""


def enqueue(engine: Engine, *, rounds: int, units: int, many: int) -> list[Result]:
    """Alternate product and floor; ``units`` commits of one task each, and ``many`` tasks in one commit."""
    with fresh_tables(engine):
        one = _compare(engine, rounds, lambda: _session_enqueue(engine, units), lambda: _session_add(engine, units))
        bulk = _compare(engine, rounds, lambda: _enqueue_many(engine, many), lambda: _plain_insert(engine, many))
    way = "COPY" if engine.dialect.name == "postgresql" else "the driver's executemany"
    return [
        Result("session.enqueue + commit / session.add + commit", "tasks/s", *one, aim=ONE_AIM),
        Result(f"enqueue_many of {many:,} / {way}", "tasks/s", *bulk, aim=MANY_AIM),
    ]


def _compare(
    engine: Engine, rounds: int, product: Callable[[], float], floor: Callable[[], float]
) -> tuple[list[float], list[float]]:
    rates: list[float] = []
    floors: list[float] = []
    for _ in range(rounds):
        for figures, run in ((floors, floor), (rates, product)):
            empty(engine, BenchTask.__tablename__)
            figures.append(run())
    return rates, floors


def _session_enqueue(engine: Engine, units: int) -> float:
    session_factory = sessionmaker(engine, class_=TaskSession)
    started = time.perf_counter()
    for number in range(units):
        with session_factory.begin() as session:
            session.enqueue(noop, number, NOTE)
    return units / (time.perf_counter() - started)


def _session_add(engine: Engine, units: int) -> float:
    session_factory = sessionmaker(engine)
    common: dict[str, Any] = {"name": NAME, "queue": QUEUE, "priority": 0, "status": "NEW", "max_attempts": 10}
    counters = {"attempt": 0, "crashes": 0, "epoch": 0}
    started = time.perf_counter()
    for number in range(units):
        with session_factory.begin() as session:
            body = {"order_id": number, "note": NOTE}
            session.add(PlainRow(id=plain_key(engine), body=body, **common, **counters))
    return units / (time.perf_counter() - started)


def _enqueue_many(engine: Engine, many: int) -> float:
    session_factory = sessionmaker(engine, class_=TaskSession)
    started = time.perf_counter()
    with session_factory.begin() as session:
        enqueue_many(session, noop, ({"order_id": number, "note": NOTE} for number in range(many)))
    return many / (time.perf_counter() - started)


def _plain_insert(engine: Engine, many: int) -> float:
    plain = plain_queue(engine, BenchTask.__tablename__)
    started = time.perf_counter()
    plain.insert(Filling(many))
    seconds = time.perf_counter() - started
    plain.close()
    return many / seconds
