"""A task that goes back to waiting beside a twin with its key."""

from __future__ import annotations

import datetime as dt

import pytest

from sa_taskqueue.states import Status
from sa_taskqueue.store.inserts import insert_many
from sa_taskqueue.store.rows import Settlement
from sa_taskqueue.store.unique import Answer, insert_unique
from tests.store.bench import Bench, pairs
from tests.store.new_tasks import keyed_task


def test_with_start_a_retried_task_waits_beside_its_twin_without_the_key(bench: Bench) -> None:
    first, twin = keyed_task("k", until="start", queue="mail"), keyed_task("k", until="start", queue="mail")
    with bench.transaction() as connection:
        insert_many(connection, bench.table, [first])
    [claimed] = bench.claim()
    with bench.transaction() as connection:
        assert insert_unique(connection, bench.table, twin).answer is Answer.INSERTED
    with bench.transaction() as connection:
        again = Settlement(claimed.id, claimed.epoch, Status.SCHEDULED, delay=0.0)
        assert bench.store.settle(connection, [again]) == {first.id}
    assert {task.id for task in bench.claim()} == {first.id, twin.id}


@pytest.mark.parametrize("way", ["retry", "release", "take over"])
def test_with_end_the_key_is_held_until_the_task_has_ended(bench: Bench, way: str) -> None:
    first = keyed_task("k", queue="mail")
    with bench.transaction() as connection:
        insert_many(connection, bench.table, [first])
    claimed = bench.claim()
    if way == "take over":
        bench.change([first.id], reserved_until=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    with bench.transaction() as connection:
        if way == "retry":
            bench.store.settle(connection, [Settlement(first.id, claimed[0].epoch, Status.SCHEDULED, delay=60.0)])
        elif way == "release":
            bench.store.release(connection, pairs(claimed))
        else:
            bench.store.take_over(connection, 10, max_crashes=3)
        assert insert_unique(connection, bench.table, keyed_task("k")) == (first.id, Answer.DUPLICATE)
