"""The named points are reached in the order in which things happen, and cost nothing without a hook."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import never
from sa_taskqueue.runtime import faults
from sa_taskqueue.worker import Worker
from sa_taskqueue.worker.faults import POINTS
from tests.worker.support import Database, drain

pytestmark = pytest.mark.servers("sqlite")


@pytest.fixture
def reached() -> Iterator[list[str]]:
    names: list[str] = []
    faults.install(names.append)
    yield names
    faults.install(None)


def test_a_task_passes_the_points_in_order(engine: Engine, db: Database, queue: TaskQueue, reached: list[str]) -> None:
    @queue.task
    def work() -> None: ...

    db.put(work)
    drain(Worker(queue, engine, drain=True))
    own = [name for name in reached if name.split(".")[0] in {"claim", "handler", "complete"}]
    of_the_task = own[: own.index("complete.after_commit") + 1]
    assert list(dict.fromkeys(of_the_task)) == [
        "claim.before_send",
        "claim.before_commit",
        "claim.after_commit",
        "handler.start",
        "handler.done_before_complete",
        "complete.before_commit",
        "complete.after_commit",
    ]


def test_a_failure_passes_its_point(engine: Engine, db: Database, queue: TaskQueue, reached: list[str]) -> None:
    @queue.task(retry=never)
    def work() -> None:
        raise ValueError

    db.put(work)
    db.put(work.using(run_after=dt.timedelta(hours=1)))
    drain(Worker(queue, engine, drain=True))
    assert "fail.before_commit" in reached
    assert "handler.done_before_complete" not in reached


def test_every_point_has_a_name_in_the_list(engine: Engine, db: Database, queue: TaskQueue, reached: list[str]) -> None:
    @queue.task(retry=never)
    def work(n: int) -> None:
        if n:
            raise SystemExit

    db.put_many(work, 2)
    drain(Worker(queue, engine, drain=True))
    assert set(reached) <= POINTS
