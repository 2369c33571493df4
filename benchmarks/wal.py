"""``wal``: bytes of write-ahead log that a task costs on PostgreSQL, by differences of ``pg_current_wal_lsn()``.

The log is the whole server's: nobody else may write there meanwhile. A checkpoint comes before each round and none
within it, so that no page is logged whole: pages made after a checkpoint need no image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import Engine

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU
from benchmarks.enqueue import noop
from benchmarks.plain.base import NOTE
from benchmarks.race import race
from benchmarks.report import Result
from benchmarks.tables import BenchTask, empty, fresh_tables
from sa_taskqueue import TaskSession

TABLE = BenchTask.__tablename__


def wal(engine: Engine, url: str, *, tasks: int, rounds: int, batch: int) -> list[Result]:
    """Enqueued in a unit of work each, or all by `enqueue_many`; claimed and finished in batches, kept or deleted."""
    figures: dict[str, list[float]] = {}
    with fresh_tables(engine):
        for _ in range(rounds):
            for one_by_one, delete in ((True, False), (False, True)):
                _checkpoint(engine)
                empty(engine, TABLE)
                order = Order("product", url, TABLE, batch, delete=delete)
                stages: dict[str, Callable[[], object]] = {
                    "enqueue + commit" if one_by_one else "enqueue_many": partial(_enqueue, engine, tasks, one_by_one),
                    f"claim and {'delete' if delete else 'complete'}": partial(race, [order], ServerCPU(engine)),
                }
                for name, run in stages.items():
                    figures.setdefault(name, []).append(_written(engine, run) / tasks)
    return [Result(f"WAL, {name}", "bytes/task", rates, []) for name, rates in figures.items()]


def _enqueue(engine: Engine, tasks: int, one_by_one: bool) -> None:
    with TaskSession(engine) as session:
        if one_by_one:
            for number in range(tasks):
                session.enqueue(noop, number, NOTE)
                session.commit()
        else:
            session.enqueue_many(noop, ({"order_id": number, "note": NOTE} for number in range(tasks)))
            session.commit()


def _written(engine: Engine, run: Callable[[], object]) -> int:
    before = _position(engine)
    run()
    with engine.connect() as connection:
        statement = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s)"
        return int(connection.exec_driver_sql(statement, (before,)).scalar_one())


def _position(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT pg_current_wal_lsn()").scalar_one())


def _checkpoint(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CHECKPOINT")
