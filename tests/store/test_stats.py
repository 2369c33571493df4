"""The figures of a queue."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Engine, Table, insert

from sa_taskqueue.ids import new_id
from sa_taskqueue.states import Status
from sa_taskqueue.store.new_rows import database_now
from sa_taskqueue.store.stats import statistics

MINUTE = dt.timedelta(minutes=1)


def add(engine: Engine, tasks: Table, **values: Any) -> None:
    with engine.begin() as connection:
        now = database_now(connection)
        moments = {key: now + value for key, value in values.items() if isinstance(value, dt.timedelta)}
        connection.execute(insert(tasks).values({"id": new_id(), "name": "n", "body": "{}", **values, **moments}))


def test_an_empty_table_has_no_queues(engine: Engine, tasks: Table) -> None:
    with engine.connect() as connection:
        assert statistics(connection, tasks) == []


def test_tasks_are_counted_by_queue_and_status(engine: Engine, tasks: Table) -> None:
    for status in (Status.NEW, Status.NEW, Status.COMPLETED):
        add(engine, tasks, queue="mail", status=status)
    add(engine, tasks, queue="a", status=Status.FAILED)
    with engine.connect() as connection:
        found = statistics(connection, tasks)
    assert [(each.queue, each.counts, each.total) for each in found] == [
        ("a", {Status.FAILED: 1}, 1),
        ("mail", {Status.NEW: 2, Status.COMPLETED: 1}, 3),
    ]


def test_ages_are_those_of_the_oldest_by_the_databases_clock(engine: Engine, tasks: Table) -> None:
    add(engine, tasks, ready_at=-10 * MINUTE)
    add(engine, tasks, ready_at=-30 * MINUTE)
    add(engine, tasks, ready_at=-90 * MINUTE, status=Status.COMPLETED)
    add(engine, tasks, status=Status.RUNNING, reserved_until=-5 * MINUTE)
    add(engine, tasks, status=Status.RUNNING, reserved_until=5 * MINUTE)
    with engine.connect() as connection:
        [found] = statistics(connection, tasks)
    assert found.oldest_due is not None
    assert found.oldest_expired is not None
    assert 29 * 60 < found.oldest_due < 35 * 60
    assert 4 * 60 < found.oldest_expired < 10 * 60


def test_leases_that_hold_are_not_expired(engine: Engine, tasks: Table) -> None:
    add(engine, tasks, status=Status.RUNNING, reserved_until=5 * MINUTE)
    with engine.connect() as connection:
        [found] = statistics(connection, tasks)
    assert (found.oldest_due, found.oldest_expired) == (None, None)
