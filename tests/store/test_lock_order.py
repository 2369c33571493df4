"""Everything that locks many rows does so in an order that cannot deadlock, or does not wait."""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable

import pytest
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Settlement
from tests.store.bench import Bench, pairs

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

ENDS = (
    {"status": Status.COMPLETED},
    {"status": Status.COMPLETED, "result": "1"},
    {"status": Status.COMPLETED, "delete": True},
    {"status": Status.SCHEDULED, "delay": 0.0},
    {"status": Status.FAILED, "error": "{}"},
)


def shuffled(claimed: list[Claimed]) -> list[Claimed]:
    return random.sample(claimed, len(claimed))


def test_finishes_renewals_releases_and_take_overs_of_the_same_rows_never_deadlock(bench: Bench) -> None:
    deadlocks: list[BaseException] = []
    others: list[BaseException] = []

    def attempt(operation: Callable[[], object]) -> None:
        try:
            operation()
        except DBAPIError as error:
            deadlock = bench.adapter.classify(error) is ErrorKind.DEADLOCK
            (deadlocks if deadlock else others).append(error)

    def finish(claimed: list[Claimed]) -> None:
        ends = [Settlement(task.id, task.epoch, **random.choice(ENDS)) for task in shuffled(claimed)]
        with bench.transaction() as connection:
            bench.store.settle(connection, ends)

    def renew(claimed: list[Claimed]) -> None:
        with bench.transaction() as connection:
            bench.store.renew(connection, pairs(shuffled(claimed)), lease=-1)

    def release(claimed: list[Claimed]) -> None:
        with bench.transaction() as connection:
            bench.store.release(connection, pairs(shuffled(claimed)))

    def take_over(_: list[Claimed]) -> None:
        with bench.transaction() as connection:
            bench.store.take_over(connection, 40, max_crashes=1000)

    operations = (finish, finish, renew, release, take_over, lambda _: bench.claim(20, lease=-1))
    for _ in range(8):
        bench.add(60)
        claimed = bench.claim(60, lease=-1)
        threads = [
            threading.Thread(target=attempt, args=(functools.partial(operation, claimed),)) for operation in operations
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert deadlocks == []
    assert others == []


def test_two_finishes_of_overlapping_rows_wait_for_each_other_in_one_order(bench: Bench) -> None:
    bench.add(40)
    claimed = bench.claim(40)
    changed: list[int] = []
    barrier = threading.Barrier(4)

    def finish() -> None:
        ends = [Settlement(task.id, task.epoch, Status.COMPLETED) for task in shuffled(claimed)]
        barrier.wait(30)
        with bench.transaction() as connection:
            changed.append(len(bench.store.settle(connection, ends)))

    threads = [threading.Thread(target=finish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(changed) == [0, 0, 0, 40]
