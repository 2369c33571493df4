"""How long a batch waits for more tasks, and what a stop and a timeout do to it."""

from __future__ import annotations

import json
import threading
from typing import Any

from sqlalchemy import Table

from sa_taskqueue import Lease, TaskQueue, fixed
from tests.reservation.conftest import reserved
from tests.support import TIMEOUT, eventually
from tests.worker.support import Database, running
from tests.worker.test_range import Range, Ref, insert_each, numbers, queue, worker

__all__ = ["queue", "reserved"]


def test_a_batch_that_is_not_full_waits_for_more(db: Database, queue: TaskQueue, worker_engine: Any) -> None:
    index = Range(queue, worker_engine, insert_each, batch=4, max_wait=TIMEOUT * 10)
    db.put_many(index.task, 3)
    with running(worker(queue, worker_engine, Lease(), drain=False)) as serving:
        eventually(lambda: serving.counts.claimed == 3)
        assert index.calls == []
        db.put(index.task, n=3)
        eventually(lambda: serving.counts.completed == 4)
        serving.stop()
    assert index.calls == [[0, 1, 2, 3]]


def test_a_batch_starts_when_it_has_waited(db: Database, queue: TaskQueue, worker_engine: Any) -> None:
    index = Range(queue, worker_engine, insert_each, batch=4, max_wait=0.2)
    db.put_many(index.task, 3)
    with running(worker(queue, worker_engine, Lease(), drain=False)) as serving:
        eventually(lambda: serving.counts.completed == 3)
        serving.stop()
    assert numbers(db) == [0, 1, 2]


def test_a_stop_gives_back_a_batch_that_was_not_started(db: Database, queue: TaskQueue, worker_engine: Any) -> None:
    index = Range(queue, worker_engine, insert_each, batch=4, max_wait=3600)
    ids = db.put_many(index.task, 3)
    with running(worker(queue, worker_engine, Lease(), drain=False)) as serving:
        eventually(lambda: serving.counts.claimed == 3)
        serving.stop()
    assert index.calls == []
    assert {(row.status, row.attempt) for row in db.rows(ids)} == {("NEW", 0)}
    assert serving.counts.released == 3


def test_a_timeout_counts_for_each_task(db: Database, queue: TaskQueue, engine: Any, tasks: Table) -> None:
    go_on = threading.Event()

    @queue.task(batch=10, item=Ref, timeout=0.3, retry=fixed(3600))
    def slow(items: list[Ref]) -> None:
        go_on.wait(TIMEOUT)

    ids = db.put_many(slow, 3)
    with running(worker(queue, engine, Lease(), drain=False)) as serving:
        eventually(lambda: serving.counts.retried == 3)
        go_on.set()
        serving.stop()
    assert {json.loads(row.error)["code"] for row in db.rows(ids)} == {"timeout"}
    assert {row.attempt for row in db.rows(ids)} == {1}
