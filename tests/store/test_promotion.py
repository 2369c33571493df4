from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.states import Status
from sa_taskqueue.store.promotion import Promotion
from tests.store.bench import Bench

PAST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
FUTURE = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def promote(bench: Bench, limit: int = 100) -> int:
    with bench.transaction() as connection:
        return bench.store.promote(connection, limit)


def next_due(bench: Bench) -> float | None:
    with bench.transaction() as connection:
        return bench.store.next_due(connection)


def test_what_is_due_becomes_new_and_what_is_not_waits(every_bench: Bench) -> None:
    due = every_bench.add(3, status=Status.SCHEDULED, scheduled_at=PAST, ready_at=PAST)
    every_bench.add(2, status=Status.SCHEDULED, scheduled_at=FUTURE)

    assert promote(every_bench) == 3

    assert {task for task, status in every_bench.statuses().items() if status is Status.NEW} == set(due)
    assert every_bench.row(due[0]).ready_at > PAST
    assert every_bench.row(due[0]).epoch == 0
    assert promote(every_bench) == 0


def test_the_most_urgent_due_rows_go_first_within_the_limit(every_bench: Bench) -> None:
    every_bench.add(3, status=Status.SCHEDULED, scheduled_at=PAST, priority=5)
    every_bench.add(3, status=Status.SCHEDULED, scheduled_at=FUTURE, priority=-9)
    later = every_bench.add(2, status=Status.SCHEDULED, scheduled_at=PAST + dt.timedelta(days=9), priority=-5)

    assert promote(every_bench, limit=2) == 2
    assert {task.id for task in every_bench.claim()} == set(later)
    assert promote(every_bench, limit=2) == 2
    assert promote(every_bench, limit=2) == 1


def test_nothing_scheduled_means_no_next_due_time(every_bench: Bench) -> None:
    every_bench.add(2)

    assert next_due(every_bench) is None
    assert promote(every_bench) == 0


def test_the_next_due_time_is_the_earliest_over_all_priorities(every_bench: Bench) -> None:
    every_bench.add(1, status=Status.SCHEDULED, scheduled_at=FUTURE, priority=-9)
    every_bench.add(1, status=Status.SCHEDULED, scheduled_at=PAST, priority=9)

    overdue = next_due(every_bench)
    promote(every_bench)
    ahead = next_due(every_bench)

    assert overdue is not None
    assert overdue < -3600
    assert ahead is not None
    assert ahead > 3600


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_one_promoter_per_table_at_a_time_and_the_others_do_not_wait(bench: Bench) -> None:
    bench.add(10, status=Status.SCHEDULED, scheduled_at=PAST)
    lock = bench.adapter.try_lock("sa_taskqueue:promote:task")
    unlock = bench.adapter.unlock("sa_taskqueue:promote:task")

    assert lock is not None
    with bench.transaction() as other:
        assert other.scalar(lock)
        assert promote(bench) == 0
        if unlock is not None:
            other.execute(unlock)

    assert promote(bench, limit=4) == 4
    assert promote(bench) == 6


@pytest.mark.servers("sqlite")
def test_a_time_that_cannot_be_read_does_not_stop_the_others(bench: Bench) -> None:
    bad = bench.add(1, status=Status.SCHEDULED, scheduled_at=PAST, priority=-1)
    bench.add(1, status=Status.SCHEDULED, scheduled_at=PAST)
    with bench.transaction() as connection:
        connection.exec_driver_sql("UPDATE task SET scheduled_at = 'tomorrow' WHERE priority = -1")

    assert promote(bench) == 1
    assert next_due(bench) is None
    with bench.transaction() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM task WHERE status = 'SCHEDULED'").scalar() == len(bad)


@pytest.mark.servers("mysql", "mariadb")
def test_a_connection_lost_in_a_promotion_is_reported_as_that(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """To free the lock fails then as well, which must not hide the reason."""

    def cut(_: object, connection: Connection, limit: int) -> int:
        number = connection.connection.driver_connection.thread_id()
        with bench.engine.connect() as other:
            other.exec_driver_sql(f"KILL {number}")
        return connection.scalar(select(limit)) or 0

    monkeypatch.setattr(Promotion, "_promote", cut)
    with pytest.raises(DBAPIError) as caught:
        promote(bench)
    assert bench.adapter.classify(caught.value) is ErrorKind.DISCONNECT
