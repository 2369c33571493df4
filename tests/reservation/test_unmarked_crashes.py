"""Crashes are counted where the claim leaves the row alone: by notes, written and deleted by the batch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import URL, Connection, Engine, event, func, select

from sa_taskqueue.exceptions import MissingTable
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import AdvisoryLock, Reservation, ReservationTable
from sa_taskqueue.retry import fixed
from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Settlement
from sa_taskqueue.worker import Worker
from tests.checks.source import ROOT
from tests.models import CrashNote, Task
from tests.reservation.conftest import MakeHolder
from tests.reservation.dying import MAX_CRASHES
from tests.reservation.dying import work as dying
from tests.reservation.holder import Holder
from tests.reservation.models import Reserved
from tests.reservation.test_reservation_table import empty
from tests.support import eventually
from tests.worker.support import Database, drain

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

strategies = pytest.mark.parametrize(
    "strategy", [AdvisoryLock, ReservationTable], ids=lambda strategy: str(strategy.name)
)


@pytest.fixture
def ids(db: Database, queue: TaskQueue) -> list[UUID]:
    @queue.task
    def work(n: int) -> None: ...

    return db.put_many(work, 10)


def notes(db: Database) -> int:
    with db.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(CrashNote)) or 0


def lose(holder: Holder, claimed: list[Claimed], engine: Engine) -> None:
    """End what holds the tasks: the connection with its locks, which the server sees in its own time; the rows."""
    holder.reconnect()
    empty(engine, Reserved.__table__)  # type: ignore[arg-type]
    eventually(lambda: not holder.renew(claimed).extended)


@contextmanager
def sent(engine: Engine) -> Iterator[list[str]]:
    """The statements sent meanwhile."""
    statements: list[str] = []

    def keep(_connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", keep)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", keep)


@strategies
@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_failed(
    url: URL, db: Database, queue: TaskQueue, strategy: type[Reservation]
) -> None:
    """Each process is killed by the task, but for the last, which counts the last crash and drains to its end."""
    task_id = db.put(dying, n=-1)
    command = [sys.executable, "-m", "tests.reservation.dying", url.render_as_string(hide_password=False)]
    codes = [
        subprocess.run([*command, strategy.name, "count"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
        for _ in range(MAX_CRASHES + 1)
    ]
    row = db.row(task_id)
    assert codes == [-9] * MAX_CRASHES + [0]
    assert (row.status, row.attempt, row.crashes) == (Status.FAILED, MAX_CRASHES, MAX_CRASHES)
    assert json.loads(row.error)["code"] == "lost_worker"
    assert notes(db) == 0


@strategies
def test_a_batch_costs_two_statements_more_and_its_end_one(
    make_holder: MakeHolder, engine: Engine, db: Database, ids: list[UUID], strategy: Any
) -> None:
    plain, counting = make_holder(strategy()), make_holder(strategy(count_crashes=True))
    for holder in (plain, counting):
        holder.claim(0)  # whatever the first claim costs once
    with sent(engine) as without:
        first = plain.claim(5)
        plain.complete(first)
    plain.reservation.end(plain.connection)
    with sent(engine) as claiming:
        second = counting.claim(5)
    assert notes(db) == len(second) == 5
    with sent(engine) as completing:
        counting.complete(second)
    about_notes = [statement for statement in claiming if "crash_note" in statement]
    assert (len(without), len(about_notes)) == (len(claiming) + len(completing) - 3, 2)
    assert notes(db) == 0


@strategies
def test_whoever_finds_a_note_on_a_free_task_counts_a_crash(
    make_holder: MakeHolder, db: Database, engine: Engine, ids: list[UUID], strategy: Any
) -> None:
    dead, alive = make_holder(strategy(count_crashes=True)), make_holder(strategy(count_crashes=True))
    lost = dead.claim(4)
    lose(dead, lost, engine)
    assert {task.attempt for task in alive.claim(10)} == {1}
    assert notes(db) == 6
    assert {(row.status, row.crashes, row.attempt) for row in db.rows([task.id for task in lost])} == {
        (Status.NEW, 1, 1)
    }
    assert {task.attempt for task in alive.claim(10)} == {2}


@strategies
def test_a_late_end_of_what_was_counted_as_a_crash_is_refused(
    make_holder: MakeHolder, db: Database, engine: Engine, ids: list[UUID], strategy: Any
) -> None:
    slow, other = make_holder(strategy(count_crashes=True)), make_holder(strategy(count_crashes=True))
    lost = slow.claim(10)
    lose(slow, lost, engine)
    assert other.claim(10) == []
    again = other.claim(10)
    assert slow.complete(lost) == set()
    slow.claim(0)
    assert notes(db) == len(again) == 10, "the note of the one that holds it now stays"
    assert other.complete(again) == set(ids)
    assert {(row.status, row.crashes, row.attempt) for row in db.rows(ids)} == {(Status.COMPLETED, 1, 2)}


@strategies
def test_a_refused_end_leaves_no_note_to_be_taken_for_a_crash(
    make_holder: MakeHolder, db: Database, ids: list[UUID], strategy: Any
) -> None:
    holder = make_holder(strategy(count_crashes=True))
    claimed = holder.claim(10)
    for task in ids:
        db.raise_epoch(task)  # as an operator does
    with db.engine.connect() as connection:
        ends = [Settlement(task.id, task.epoch, Status.COMPLETED) for task in claimed]
        assert holder.reservation.settle(connection, ends) == set()
        connection.rollback()  # with the work of a handler whose end is refused
    assert notes(db) == 10
    holder.reservation.let_go([task.id for task in claimed])
    holder.reservation.end(holder.connection)
    assert notes(db) == 0


@strategies
def test_no_note_is_left_whatever_the_end(worker_engine: Any, db: Database, queue: TaskQueue, strategy: Any) -> None:
    counted = TaskQueue(Task, crash_notes=CrashNote, reservations=Reserved)
    seen: list[int] = []

    @counted.task(retry=fixed(3600))
    def work(n: int) -> None:
        seen.append(notes(db))
        if n == 1:
            raise ValueError
        if n == 2:
            raise SystemExit

    db.put_many(work, 4)
    drain(Worker(counted, worker_engine, reservation=strategy(count_crashes=True), drain=True))
    assert len(seen) == 4
    assert min(seen) > 0
    assert notes(db) == 0
    assert db.statuses() == {Status.COMPLETED: 2, Status.SCHEDULED: 2}


@strategies
def test_crashes_cannot_be_counted_without_a_table(
    engine: Engine, db: Database, queue: TaskQueue, strategy: Any
) -> None:
    with pytest.raises(MissingTable, match=r"count_crashes=True.*CrashNoteMixin"):
        drain(Worker(queue, engine, reservation=strategy(count_crashes=True)))
