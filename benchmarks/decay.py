"""``decay``: the drain rate among rows that a claim must not notice, beside the rate on an empty table.

Each case fills a second table of the same structure once; the rounds then alternate between that table (the "product")
and the empty one (the "floor"). Every run ends by count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from sqlalchemy import Engine

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU
from benchmarks.plain.base import Filling
from benchmarks.race import race
from benchmarks.report import Result
from benchmarks.tables import BenchTask, CrowdedTask, Synchronous, empty, fresh_tables, plain_queue

AIM = 0.8
MEMORY_LIMIT = 10.0
"""MiB that a worker may have grown between a tenth of its tasks and all of them."""


@dataclass(frozen=True)
class Options:
    url: str
    tasks: int
    rounds: int
    batch: int
    scale: float = 1.0
    """Share of the full number of rows in the way; 1 is what the aims are about."""
    synchronous: Synchronous = "FULL"
    handler: str = "sync"

    def rows(self, full: int) -> int:
        return max(int(full * self.scale), 1)

    def order(self, table: str, tasks: int, memory_at: tuple[int, ...] = ()) -> Order:
        return Order(
            "product",
            self.url,
            table,
            self.batch,
            max_tasks=tasks,
            synchronous=self.synchronous,
            handler=self.handler,
            memory_at=memory_at,
        )


def _crowd(options: Options) -> dict[str, Filling]:
    return {
        "finished": Filling(options.rows(1_000_000), status="COMPLETED"),
        "due": Filling(options.rows(200_000)),
        "scheduled": Filling(options.rows(1_000_000), status="SCHEDULED", priority=-50, seconds_ahead=86_400),
        "in-flight": Filling(options.rows(20_000), status="RUNNING", seconds_ahead=86_400),
    }


def decay(engine: Engine, options: Options, cases: list[str]) -> list[Result]:
    """Run the named cases one after the other."""
    results = []
    for case in cases:
        with fresh_tables(engine):
            results.append(CASES[case](engine, options, case))
    return results


def _crowded(engine: Engine, options: Options, case: str) -> Result:
    filling = _crowd(options)[case]
    _fill(engine, CrowdedTask.__tablename__, filling)
    return _alternate(engine, options, f"decay: {filling.count:,} rows {case}", options.tasks, nullcontext)


def _snapshot(engine: Engine, options: Options, case: str) -> Result:
    """Old snapshots keep dead rows: drain enough of them for a minute at 10,000 tasks per second."""
    tasks = options.rows(600_000)
    return _alternate(engine, options, f"decay: {case} held over {tasks:,} tasks", tasks, lambda: _held(engine))


def _alternate(
    engine: Engine, options: Options, name: str, tasks: int, meanwhile: Callable[[], AbstractContextManager[None]]
) -> Result:
    """Drain ``tasks`` from the crowded table while ``meanwhile`` lasts, and a plain number from the empty one."""
    rates: list[float] = []
    floors: list[float] = []
    for _ in range(options.rounds):
        empty(engine, BenchTask.__tablename__)
        floors.append(_drain(engine, options, BenchTask.__tablename__, options.tasks))
        with meanwhile():
            rates.append(_drain(engine, options, CrowdedTask.__tablename__, tasks))
    return Result(name, "tasks/s", rates, floors, aim=AIM)


def _memory(engine: Engine, options: Options, case: str) -> Result:
    """Resident memory of one worker after a tenth of its tasks and after all of them."""
    tasks = options.rows(200_000)
    table = BenchTask.__tablename__
    _fill(engine, table, Filling(tasks))
    outcome = race([options.order(table, tasks, (tasks // 10, tasks))], ServerCPU(engine))
    early, late = outcome.memory[tasks // 10], outcome.memory[tasks]
    verdict = "within" if late - early <= MEMORY_LIMIT else "MISSED"
    grown = f"{late - early:.1f} MiB (limit {MEMORY_LIMIT:.0f}: {verdict})"
    return Result(f"decay: {case} after {tasks:,} tasks", "MiB", [late], [early], details={"grown by": grown})


def _fill(engine: Engine, table: str, filling: Filling) -> None:
    plain = plain_queue(engine, table)
    plain.insert(filling)
    plain.settle_down()
    plain.close()


def _drain(engine: Engine, options: Options, table: str, tasks: int) -> float:
    _fill(engine, table, Filling(tasks))
    outcome = race([options.order(table, tasks)], ServerCPU(engine))
    if outcome.done != tasks:
        raise SystemExit(f"{outcome.done} of {tasks} tasks were done")
    return outcome.rate


@contextmanager
def _held(engine: Engine) -> Iterator[None]:
    """A reader's transaction that stays open, with the snapshot it took at its first statement."""
    sqlite = engine.dialect.name == "sqlite"
    level = "AUTOCOMMIT" if sqlite else "REPEATABLE READ"
    with engine.connect().execution_options(isolation_level=level) as connection:
        if sqlite:
            connection.exec_driver_sql("BEGIN")  # the engine's own BEGIN IMMEDIATE would keep every writer out
        connection.exec_driver_sql(f"SELECT count(*) FROM {CrowdedTask.__tablename__}").scalar()
        yield
        if sqlite:
            connection.exec_driver_sql("ROLLBACK")
        connection.rollback()


CASES: dict[str, Callable[[Engine, Options, str], Result]] = {
    "finished": _crowded,
    "due": _crowded,
    "scheduled": _crowded,
    "in-flight": _crowded,
    "snapshot": _snapshot,
    "memory": _memory,
}
