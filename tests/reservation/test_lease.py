"""The default strategy, as a worker uses it, over the real store."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, Table

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import Lease, Reservation
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement, TaskStore
from tests.models import Task

queue = TaskQueue(Task)


@queue.task
def work(n: int) -> None: ...


def bound(engine: Engine, tasks: Table, by: str) -> Reservation:
    with engine.connect() as connection:
        adapter = adapter_for(connection.dialect)
    reservation: Reservation = Lease()
    reservation.bind(TaskStore(tasks, adapter), adapter, lease=60.0, by=by)
    return reservation


@pytest.fixture
def first(engine: Engine, tasks: Table) -> Reservation:
    with TaskSession(engine) as session, session.begin():
        session.enqueue_many(work, [{"n": n} for n in range(10)])
    return bound(engine, tasks, "first")


def test_two_holders_never_get_the_same_task(engine: Engine, tasks: Table, first: Reservation) -> None:
    second = bound(engine, tasks, "second")
    with engine.begin() as connection:
        mine = first.claim(connection, "default", 6)
    with engine.begin() as connection:
        others = second.claim(connection, "default", 6)
    assert (len(mine), len(others)) == (6, 4)
    assert not {task.id for task in mine} & {task.id for task in others}
    assert {(task.attempt, task.epoch) for task in mine} == {(1, 1)}


def test_only_the_holder_of_the_epoch_finishes(engine: Engine, first: Reservation) -> None:
    with engine.begin() as connection:
        [task] = first.claim(connection, "default", 1)
    with engine.begin() as connection:
        assert first.settle(connection, [Settlement(task.id, task.epoch - 1, Status.COMPLETED)]) == set()
    with engine.begin() as connection:
        assert first.settle(connection, [Settlement(task.id, task.epoch, Status.COMPLETED)]) == {task.id}
    with engine.begin() as connection:
        assert first.settle(connection, [Settlement(task.id, task.epoch, Status.COMPLETED)]) == set()


def test_a_released_task_is_claimed_again_under_another_epoch(engine: Engine, first: Reservation) -> None:
    with engine.begin() as connection:
        [task] = first.claim(connection, "default", 1)
    with engine.begin() as connection:
        assert first.release(connection, [(task.id, task.epoch)]) == {task.id}
    with engine.begin() as connection:
        again = {one.id: one for one in first.claim(connection, "default", 10)}[task.id]
    assert (again.attempt, again.epoch > task.epoch) == (1, True)


def test_a_renewal_keeps_what_is_held(engine: Engine, first: Reservation) -> None:
    with engine.begin() as connection:
        held = [(task.id, task.epoch) for task in first.claim(connection, "default", 3)]
    with engine.begin() as connection:
        renewed = first.renew(connection, [*held[:2], (held[2][0], held[2][1] + 1)], lease=60.0)
    assert renewed.extended == {task_id for task_id, _ in held[:2]}
    assert renewed.standing == set()
