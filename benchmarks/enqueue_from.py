"""``enqueue_from``: a task for each row that an UPDATE changes, beside the same work done by hand.

On PostgreSQL by hand is the same statement in plain SQL, with the same expression for the ids, table and indexes.
Elsewhere it is what one does without `enqueue_from`: read the rows, change them, and `enqueue_many`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, String, insert, select, text, update
from sqlalchemy.orm import Mapped, mapped_column, sessionmaker

from benchmarks.plain.base import QUEUE
from benchmarks.report import Result
from benchmarks.tables import Base, BenchTask, empty, fresh_tables
from sa_taskqueue import TaskQueue, TaskSession

AIM = 1 / 1.3
"""At most 1.3 times the time of the statement by hand."""

_ROWS_PER_INSERT = 10_000


class BenchOrder(Base):
    """The rows that change."""

    __tablename__ = "bench_order"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status: Mapped[str] = mapped_column(String(20))
    customer: Mapped[str] = mapped_column(String(40))


queue = TaskQueue(BenchTask, default_queue=QUEUE)


@queue.task
def send_receipt(order_id: int, customer: str, lang: str) -> None:
    """Never run here."""


BY_HAND = """
WITH changed AS (UPDATE bench_order SET status = 'complete' WHERE status = 'open' RETURNING *),
queued AS (
    INSERT INTO bench_task (id, name, queue, priority, status, max_attempts, body)
    SELECT {id}, 'send_receipt', '{queue}', 0, 'NEW', 10,
        jsonb_build_object('order_id', changed.id, 'customer', changed.customer, 'lang', 'en')
    FROM changed
)
SELECT count(*) FROM changed
"""

ID = (
    "encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send("
    "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid"
)


def enqueue_from(engine: Engine, *, rounds: int, rows: int) -> list[Result]:
    """Alternate both; each starts with the table of orders made anew, all of them open."""
    on_postgresql = engine.dialect.name == "postgresql"
    seconds: list[float] = []
    by_hand: list[float] = []
    with fresh_tables(engine):
        for number in range(rounds):
            pair = [(seconds, _product), (by_hand, _statement if on_postgresql else _by_rows)]
            for figures, run in pair if number % 2 else reversed(pair):
                _refill(engine, rows)
                figures.append(_timed(engine, run, rows))
    name = f"enqueue_from of {rows:,} / {'the CTE by hand' if on_postgresql else 'rows read, then enqueue_many'}"
    return [Result(name, "s", seconds, by_hand, aim=AIM if on_postgresql else None, smaller_is_better=True)]


def _refill(engine: Engine, rows: int) -> None:
    empty(engine, BenchTask.__tablename__)
    empty(engine, BenchOrder.__tablename__)
    with engine.begin() as connection:
        for start in range(0, rows, _ROWS_PER_INSERT):
            numbers = range(start, min(rows, start + _ROWS_PER_INSERT))
            values = [{"id": each, "status": "open", "customer": f"customer {each}"} for each in numbers]
            connection.execute(insert(BenchOrder.__table__), values)  # type: ignore[arg-type]
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE bench_order, bench_task")
            connection.exec_driver_sql("CHECKPOINT")


def _timed(engine: Engine, run: Callable[[Engine], int], rows: int) -> float:
    started = time.perf_counter()
    changed = run(engine)
    seconds = time.perf_counter() - started
    with engine.connect() as connection:
        tasks = connection.scalar(text("SELECT count(DISTINCT id) FROM bench_task"))
    if not changed == tasks == rows:
        raise SystemExit(f"{rows} rows, {changed} changed, {tasks} tasks with an id of their own")
    return seconds


def _product(engine: Engine) -> int:
    with sessionmaker(engine, class_=TaskSession).begin() as session:
        change = update(BenchOrder).where(BenchOrder.status == "open").values(status="complete")
        arguments: dict[str, Any] = {"order_id": BenchOrder.id, "customer": BenchOrder.customer, "lang": "en"}
        return session.enqueue_from(change, send_receipt, **arguments)


def _statement(engine: Engine) -> int:
    native = (engine.dialect.server_version_info or ()) >= (18,)
    with engine.begin() as connection:
        statement = BY_HAND.format(id="uuidv7()" if native else ID, queue=QUEUE)
        return connection.exec_driver_sql(statement).scalar_one()  # type: ignore[no-any-return]


def _by_rows(engine: Engine) -> int:
    opened = BenchOrder.status == "open"
    with sessionmaker(engine, class_=TaskSession).begin() as session:
        found = session.execute(select(BenchOrder.id, BenchOrder.customer).where(opened).with_for_update()).all()
        session.execute(update(BenchOrder).where(opened).values(status="complete"))
        session.enqueue_many(send_receipt, ({"order_id": id_, "customer": name, "lang": "en"} for id_, name in found))
    return len(found)
