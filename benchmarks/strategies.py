"""``strategies``: what it costs to hold a task, for each strategy that the database carries.

The strategies take turns in every round, so that what else the machine does meets all of them. The log and the dead
rows are those of PostgreSQL; the log is the whole server's, so nobody else may write there meanwhile.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, select, text

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU
from benchmarks.plain.base import QUEUE, Filling
from benchmarks.race import race
from benchmarks.tables import Base, BenchEffect, BenchReservation, BenchTask, empty, fresh_tables, plain_queue
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.store import TaskStore

TASK, EFFECT, RESERVATION = BenchTask.__tablename__, BenchEffect.__tablename__, BenchReservation.__tablename__
TABLES = Base.metadata.tables
RANGE_AIM = 5.0
HELD = 20
"""Tasks held at once while the locks are counted; a row lock's transaction holds one."""


@dataclass
class Figures:
    """What each round measured with one handler, in order."""

    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Microseconds of the client for each task."""
    statements: list[float] = field(default_factory=list)
    wal: list[float] = field(default_factory=list)
    dead_rows: list[float] = field(default_factory=list)

    def medians(self) -> dict[str, float | list[float] | None]:
        return {
            "rate": _median(self.rates, 1),
            "rates": [round(rate, 1) for rate in self.rates],
            "cpu": _median(self.cpu, 0),
            "statements": _median(self.statements, 3),
            "wal": _median(self.wal, 0),
            "dead_rows": _median(self.dead_rows, 2),
        }


@dataclass(frozen=True)
class Options:
    """How much is drained in each run, and in what batches."""

    url: str
    tasks: int
    rounds: int
    batch: int


def strategies(engine: Engine, options: Options, *, as_json: bool) -> None:
    """Measure, print all rounds, and end with one line of JSON."""
    with engine.connect() as connection:
        carried = [name for name in STRATEGIES if name in adapter_for(connection.dialect).reservations]
    runs = [(name, work) for work in ("noop", "insert") for name in carried]
    measured = {run: Figures() for run in [*runs, ("lease", "range")]}
    with fresh_tables(engine):
        locks = {name: _locks(engine, name) for name in carried}
        server = ServerCPU(engine)
        for _ in range(options.rounds):
            for (name, work), figures in measured.items():
                _run(engine, server, options, name, work, figures)
    if not as_json:
        _show(measured, locks)
    print(json.dumps(_result(measured, locks)))


def _run(engine: Engine, server: ServerCPU, options: Options, name: str, work: str, figures: Figures) -> None:
    _fill(engine, options.tasks)
    log, dead = _log_position(engine), _dead_rows(engine)
    order = Order("strategy", options.url, TASK, options.batch, reservation=name, work=work)
    outcome = race([order], server)
    if outcome.done != options.tasks or (work != "noop" and _effects(engine) != options.tasks):
        raise SystemExit(f"{name}: {outcome.done} of {options.tasks} tasks, {_effects(engine)} effects")
    figures.rates.append(outcome.rate)
    figures.cpu.append(outcome.client_us)
    figures.statements.append(outcome.statements / options.tasks)
    if log is not None and dead is not None:
        figures.wal.append(((_log_position(engine) or 0) - log) / options.tasks)
        figures.dead_rows.append(((_dead_rows(engine) or 0) - dead) / options.tasks)


def _fill(engine: Engine, tasks: int) -> None:
    """On PostgreSQL the checkpoint comes first: pages made after it are never logged whole."""
    postgresql = engine.dialect.name == "postgresql"
    if postgresql:
        _execute(engine, "CHECKPOINT")
    for table in (TASK, EFFECT, RESERVATION):
        empty(engine, table)
    plain = plain_queue(engine, TASK)
    plain.insert(Filling(tasks))
    if postgresql:
        _execute(engine, f"ANALYZE {TASK}")
    else:
        plain.settle_down()
    plain.close()


def _locks(engine: Engine, name: str) -> float | None:
    """The server's locks for each held task, while its handler runs; None where the server does not tell."""
    _fill(engine, HELD)
    reservation = STRATEGIES[name]()
    level = "AUTOCOMMIT" if reservation.reserves_apart else "READ COMMITTED"
    if engine.dialect.name == "sqlite":
        return None
    with engine.connect().execution_options(isolation_level=level) as connection:
        adapter = adapter_for(connection.dialect)
        store = TaskStore(TABLES[TASK], adapter, reservations=TABLES[RESERVATION])
        reservation.bind(store, adapter, lease=60.0, by="bench")
        claimed = reservation.claim(connection, QUEUE, 1 if reservation.claims_in_work else HELD)
        if not reservation.claims_in_work:
            connection.commit()
        held = _held_locks(connection, len(claimed))
        if name == "advisory-lock" and engine.dialect.name != "postgresql":
            # Named locks are in no table that both servers have; the strategy asks for them by name.
            pairs = [(task.id, task.epoch) for task in claimed]
            held = len(reservation.renew(connection, pairs, lease=60.0).extended) / len(claimed)
        connection.invalidate()
    return held


def _held_locks(connection: Connection, tasks: int) -> float:
    if connection.dialect.name == "postgresql":
        statement = """
            SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND granted
            AND (relation IS NULL OR relation <> 'pg_locks'::regclass) AND locktype <> 'virtualxid'"""
    else:
        statement = """
            SELECT coalesce(sum(trx_rows_locked), 0) FROM information_schema.innodb_trx
            WHERE trx_mysql_thread_id = connection_id()"""
    return round(float(connection.execute(text(statement)).scalar_one()) / tasks, 2)


def _effects(engine: Engine) -> int:
    with engine.connect() as connection:
        return len(connection.execute(select(BenchEffect.order_id)).all())


def _log_position(engine: Engine) -> int | None:
    if engine.dialect.name != "postgresql":
        return None
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").scalar_one())


def _dead_rows(engine: Engine) -> int | None:
    """Versions of rows that updates and deletes have left behind so far, whether removed since or not."""
    if engine.dialect.name != "postgresql":
        return None
    with engine.connect() as connection:
        statement = "SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE relname LIKE 'bench%%'"
        return int(connection.exec_driver_sql(statement).scalar_one() or 0)


def _execute(engine: Engine, statement: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(statement)


def _median(values: Sequence[float], digits: int) -> float | None:
    return round(statistics.median(values), digits) if values else None


def _range_over_single(measured: dict[tuple[str, str], Figures]) -> float:
    single, ranged = measured["lease", "insert"], measured["lease", "range"]
    return round(statistics.median(ranged.rates) / statistics.median(single.rates), 2)


def _result(measured: dict[tuple[str, str], Figures], locks: dict[str, float | None]) -> dict[str, object]:
    base = {work: statistics.median(measured["lease", work].rates) for work in ("noop", "insert")}
    found = {}
    for name, held in locks.items():
        noop, insert = measured[name, "noop"], measured[name, "insert"]
        found[name] = {
            **noop.medians(),
            "over_lease": round(statistics.median(noop.rates) / base["noop"], 3),
            "locks": held,
            "insert": {
                **insert.medians(),
                "over_lease": round(statistics.median(insert.rates) / base["insert"], 3),
            },
        }
    return {
        "strategies": found,
        "range": measured["lease", "range"].medians(),
        "range_over_single": _range_over_single(measured),
    }


def _show(measured: dict[tuple[str, str], Figures], locks: dict[str, float | None]) -> None:
    heads = ("tasks/s", "CPU us", "statements", "log bytes", "dead rows")
    print(" " * 33 + " ".join(f"{head:>10}" for head in heads))
    for (name, work), figures in measured.items():
        medians = figures.medians()
        cells = [medians[key] for key in ("rate", "cpu", "statements", "wal", "dead_rows")]
        shown = ["-" if cell is None else f"{cell:,}" for cell in cells]
        print(f"{name + ', ' + work:32} " + " ".join(f"{cell:>10}" for cell in shown))
        print(f"    rounds: {'  '.join(f'{rate:,.1f}' for rate in figures.rates)}")
    for name, held in locks.items():
        print(f"locks of the server for each held task, {name}: {'not told' if held is None else held}")
    ratio = _range_over_single(measured)
    print(f"range of 100 over single, one row inserted: {ratio} (aim {RANGE_AIM}: {_verdict(ratio)})")


def _verdict(ratio: float) -> str:
    return "reached" if ratio >= RANGE_AIM else "MISSED"
