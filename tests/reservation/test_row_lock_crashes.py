"""What becomes of a task whose worker dies: its row is free at once, and crashes are counted where that is wanted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, insert, select

from sa_taskqueue import Lease, RowLock, TaskContext, TaskQueue, Worker
from sa_taskqueue.states import Status
from tests.models import CrashNote, Effect, Task
from tests.reservation.row_lock_process import queue as victims
from tests.reservation.row_lock_process import work as victim
from tests.support import eventually
from tests.worker.support import Database, drain

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(url: URL) -> Iterator[Start]:
    """Start a worker process whose handler never ends; it is killed after the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.reservation.row_lock_process"]
        arguments = [url.render_as_string(hide_password=False), *options]
        process = subprocess.Popen([*command, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def notes(db: Database) -> list[tuple[str, int]]:
    with db.engine.connect() as connection:
        return [(str(row.task_id), row.attempt) for row in connection.execute(select(CrashNote.__table__))]


def effects(db: Database) -> list[str]:
    with db.engine.connect() as connection:
        return sorted(connection.scalars(select(Effect.task_id)))


def successor() -> TaskQueue:
    """The same task name with a handler that ends."""
    queue = TaskQueue(Task, crash_notes=CrashNote)

    @queue.task(name=victim.name)
    def work(context: TaskContext) -> None:
        context.session.add(Effect(task_id=str(context.task.id)))

    return queue


def test_kill_9_frees_the_task_and_its_work_is_undone(engine: Engine, db: Database, start: Start) -> None:
    task_id = db.put(victim)
    kill(start())
    drain(Worker(successor(), engine, reservation=RowLock(), drain=True))
    row = db.row(task_id)
    assert (row.status, row.attempt, row.crashes) == (Status.COMPLETED, 1, 0)
    assert effects(db) == [str(task_id)]


def test_kill_9_is_counted_with_crash_notes(engine: Engine, db: Database, start: Start) -> None:
    task_id = db.put(victim)
    process = start("count")
    assert notes(db) == [(str(task_id), 1)]
    kill(process)
    drain(Worker(successor(), engine, reservation=RowLock(count_crashes=True), drain=True))
    row = db.row(task_id)
    assert (row.status, row.attempt, row.crashes, notes(db)) == (Status.COMPLETED, 2, 1, [])
    assert effects(db) == [str(task_id)]


def test_a_poison_task_fails_at_the_limit_of_crashes(engine: Engine, db: Database, start: Start) -> None:
    task_id = db.put(victim)
    for _ in range(2):
        kill(start("count"))
    worker = Worker(victims, engine, reservation=RowLock(count_crashes=True), drain=True, max_crashes=2)
    drain(worker)
    row = db.row(task_id)
    assert (row.status, row.crashes, json.loads(row.error)["code"]) == (Status.FAILED, 2, "lost_worker")
    assert (worker.counts.claimed, notes(db)) == (0, [])


def test_notes_are_gone_whatever_the_end(engine: Engine, db: Database) -> None:
    queue = TaskQueue(Task, crash_notes=CrashNote)

    @queue.task
    def work(n: int) -> None:
        assert notes(db)
        if n == 1:
            raise ValueError
        if n == 2:
            raise SystemExit

    @queue.task
    async def async_work(n: int) -> None: ...

    db.put_many(work, 3)
    db.put_many(async_work, 3)
    worker = drain(Worker(queue, engine, reservation=RowLock(count_crashes=True), drain=True))
    assert (worker.counts.completed, worker.counts.released, notes(db)) == (4, 1, [])


def test_a_note_that_a_worker_with_a_lease_left_behind_is_no_crash(engine: Engine, db: Database) -> None:
    queue = TaskQueue(Task, crash_notes=CrashNote)

    @queue.task
    def work(context: TaskContext) -> None:
        if context.attempt == 1:
            raise ValueError

    task_id = db.put(work)
    with db.engine.begin() as connection:
        connection.execute(insert(CrashNote), {"task_id": task_id, "attempt": 1, "by": "killed"})
    drain(Worker(queue, engine, reservation=Lease(), max_tasks=1))
    eventually(lambda: db.row(task_id).attempt == 1)
    worker = Worker(queue, engine, reservation=RowLock(count_crashes=True), max_tasks=1)
    drain(worker)
    row = db.row(task_id)
    assert (row.status, row.attempt, row.crashes, notes(db)) == (Status.COMPLETED, 2, 0, [])
