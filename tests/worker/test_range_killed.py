"""A worker that is killed in the middle of a batch: nothing of it is there, and each task's effect is there once."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import URL, Engine, Table

from sa_taskqueue import Worker
from tests.checks.source import ROOT
from tests.reservation.conftest import reserved
from tests.support import eventually
from tests.worker.range_process import LEASE, STRATEGIES, work_queue
from tests.worker.support import Database, running
from tests.worker.test_range import numbers

__all__ = ["reserved"]


@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_killed_batch_leaves_nothing_and_runs_again(
    engine: Engine, url: URL, db: Database, reserved: Table, strategy: str
) -> None:
    queue = work_queue(lambda: None)
    ids = db.put_many(queue.handlers["index"], 6)
    command = [sys.executable, "-m", "tests.worker.range_process", url.render_as_string(hide_password=False), strategy]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "half\n"
        finally:
            process.kill()
    assert numbers(db) == []
    worker = Worker(queue, engine, queues={"default": 1}, reservation=STRATEGIES[strategy](), lease=LEASE, poll_max=0.2)
    with running(worker):
        eventually(lambda: worker.counts.completed == 6)
        worker.stop()
    assert numbers(db) == list(range(6))
    assert {row.status for row in db.rows(ids)} == {"COMPLETED"}
    # Only a lease wrote the attempt that died; after it each runs alone.
    assert {row.attempt for row in db.rows(ids)} == {2 if strategy == "lease" else 1}
