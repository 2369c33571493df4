"""A worker that dies with a task in hand: the task runs elsewhere, without anybody's help."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import URL, Engine

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.checks.source import ROOT
from tests.support import eventually
from tests.worker.support import Database, running


@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("strategy", ["advisory-lock", "reservation-table"])
def test_the_task_of_a_killed_worker_runs_again(
    engine: Engine, url: URL, db: Database, queue: TaskQueue, strategy: str
) -> None:
    runs: list[int] = []

    @queue.task
    def work(n: int) -> None:
        runs.append(n)

    task_id = db.put(work, n=7)
    command = [sys.executable, "-m", "tests.reservation.dying", url.render_as_string(hide_password=False), strategy]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started 7\n"
            # Written nowhere in the row, yet it is held.
            assert db.row(task_id).status == Status.NEW
        finally:
            process.kill()
    # An AdvisoryLock is freed when the server notices; a reservation, when the lease of 2 s is over.
    with running(Worker(queue, engine, reservation=STRATEGIES[strategy](), drain=True, poll_max=0.2)):
        eventually(lambda: runs == [7])
    assert (db.row(task_id).status, db.row(task_id).attempt) == (Status.COMPLETED, 1)
