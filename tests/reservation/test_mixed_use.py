"""Strategies that do not see each other's holds warn of each other at a worker's start; those that do, do not."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.worker import Worker
from tests.support import TIMEOUT
from tests.worker.support import Database, drain, running

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

UNSEEN = {
    "lease": {"advisory-lock", "reservation-table"},
    "advisory-lock": {"lease", "row-lock", "reservation-table"},
    "reservation-table": {"lease", "row-lock", "advisory-lock"},
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("other", UNSEEN)
def test_a_worker_warns_of_one_whose_holds_it_does_not_see(
    engine: Engine, db: Database, queue: TaskQueue, other: str, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun, end = threading.Event(), threading.Event()

    @queue.task
    def hold() -> None:
        begun.set()
        assert end.wait(TIMEOUT)

    @queue.task(queue="another")
    def work() -> None: ...

    db.put(hold)
    db.put(work)
    with running(Worker(queue, engine, reservation=STRATEGIES[other](), max_tasks=1)):
        assert begun.wait(TIMEOUT)
        caplog.clear()
        drain(Worker(queue, engine, queues=["another"], reservation=STRATEGIES[strategy](), max_tasks=1))
        end.set()
    assert (f"together with {strategy} a task may run twice" in caplog.text) is (strategy in UNSEEN[other])
