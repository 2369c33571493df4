"""Very many tasks that are due at the same instant, as at a full hour: 100,000 of them in the nightly run."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator

import pytest
from sqlalchemy import URL, Engine, create_engine, func, select

from sa_taskqueue import telemetry
from sa_taskqueue.definitions import TaskDefinition
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.sqlite import sqlite_engine
from tests.support import eventually
from tests.worker.support import Database, running

LONG = bool(os.environ.get("SA_TASKQUEUE_TEST_LONG"))
TASKS, WORKERS, SECONDS = (100_000, 8, 1200) if LONG else (2_000, 3, 100)
URGENT = -1

pytestmark = pytest.mark.timeout(SECONDS + 200)


@pytest.fixture
def engines(url: URL) -> Iterator[list[Engine]]:
    """An engine for each worker, as each has a process of its own elsewhere."""
    make = sqlite_engine if url.get_backend_name() == "sqlite" else create_engine
    engines = [make(url) for _ in range(WORKERS)]
    yield engines
    for engine in engines:
        engine.dispose()


@pytest.fixture
def promoted() -> Iterator[list[int]]:
    """The size of each batch that was promoted."""
    batches: list[int] = []

    def listen(event: telemetry.Event) -> None:
        if isinstance(event, telemetry.TasksPromoted):
            batches.append(event.count)

    unsubscribe = telemetry.subscribe(listen)
    yield batches
    unsubscribe()


def test_tasks_due_at_one_instant_are_promoted_and_completed_once_and_an_urgent_one_passes_them(
    db: Database, queue: TaskQueue, engines: list[Engine], promoted: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    calls: Counter[int] = Counter()
    before_the_urgent: list[int] = []
    started = itertools.count()  # handlers run in several threads; `next` is atomic

    @queue.task
    def work(n: int) -> None:
        place = next(started)
        if n == URGENT:
            before_the_urgent.append(place)
        calls[n] += 1

    caplog.set_level(logging.INFO, "sa_taskqueue.runtime")
    _schedule(db, work)
    workers = [Worker(queue, engine) for engine in engines]
    with contextlib.ExitStack() as at_work:
        for worker in workers:
            at_work.enter_context(running(worker))
        eventually(lambda: sum(worker.counts.completed for worker in workers) >= TASKS + 1, timeout=SECONDS)
        for worker in workers:
            worker.stop()

    assert sum(promoted) == TASKS + 1
    assert len(calls) == calls.total() == TASKS + 1
    assert sum(worker.counts.completed for worker in workers) == TASKS + 1
    assert _attempts(db) == [(Status.COMPLETED, 1, 0, TASKS + 1)]
    assert [record.getMessage() for record in caplog.records if "deadlock" in record.getMessage().lower()] == []
    # It is in the second batch of 1,000 at the latest, and first in it.
    assert before_the_urgent[0] < TASKS * 3 // 4


def _schedule(db: Database, work: TaskDefinition[[int], None]) -> None:
    """All at one instant, and after it the urgent one."""
    instant = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=2)
    urgent = work.using(run_after=instant + dt.timedelta(milliseconds=1), priority=-10)
    due = work.using(run_after=instant)
    db.put_new(work, [*(due.new(n) for n in range(TASKS)), urgent.new(URGENT)])


def _attempts(db: Database) -> list[tuple[str, int, int, int]]:
    """Each combination of status, attempts and crashes, and how many tasks have it."""
    kinds = (db.table.c.status, db.table.c.attempt, db.table.c.crashes)
    with db.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(*kinds, func.count()).group_by(*kinds))]
