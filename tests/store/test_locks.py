"""No statement of the hot path locks rows that it does not change.

Counted on 2026-11-30 (PostgreSQL 15, MySQL 9.7, MariaDB 10.11): a claim of 5 takes 5 / 10 / 10 locks, with or without
500 leased rows; a promotion or take-over of 20 takes 20 / 40 / 40; a renewal or finish of 20 takes 20 / 20 / 20.
"""

from __future__ import annotations

import datetime as dt
from itertools import cycle
from typing import Any

import pytest
from sqlalchemy import Connection, select

from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Settlement
from tests.store.bench import Bench, pairs
from tests.store.locks import locked_rows

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

PAST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
FUTURE = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def most(bench: Bench, rows: int) -> int:
    """On MySQL and MariaDB the record of the index the row was reached by, and the row."""
    return rows if bench.engine.dialect.name == "postgresql" else 2 * rows


@pytest.mark.parametrize("leased", [0, 500])
def test_a_claim_locks_what_it_returns(bench: Bench, leased: int) -> None:
    bench.add(leased) if leased else None
    bench.claim(leased) if leased else None
    bench.add(1500)

    with bench.transaction() as connection:
        assert len(bench.store.claim(connection, "mail", 5, lease=60, by="w")) == 5
        locked = locked_rows(bench.engine, connection)
    assert 5 <= locked <= most(bench, 5)


def test_a_claim_of_an_empty_queue_locks_nothing(bench: Bench) -> None:
    bench.add(100, queue="reports")
    bench.add(100, status=Status.SCHEDULED, scheduled_at=FUTURE)

    with bench.transaction() as connection:
        assert bench.store.claim(connection, "mail", 5, lease=60, by="w") == []
        assert locked_rows(bench.engine, connection) == 0


@pytest.mark.servers("postgresql")
def test_a_claim_from_positions_locks_what_it_returns(bench: Bench) -> None:
    for priority in (1, 2, 3):
        bench.add(30, priority=priority)
    memory = bench.store.claim_memory()
    assert memory is not None
    with bench.transaction() as connection:
        bench.store.claim(connection, "mail", 70, lease=60, by="w", memory=memory)

    with bench.transaction() as connection:
        assert len(bench.store.claim(connection, "mail", 15, lease=60, by="w", memory=memory)) == 15
        assert locked_rows(bench.engine, connection) == 15


def test_a_promotion_locks_what_it_promotes(bench: Bench) -> None:
    for priority in (1, 2):
        bench.add(300, status=Status.SCHEDULED, priority=priority, scheduled_at=PAST)
        bench.add(1000, status=Status.SCHEDULED, priority=priority, scheduled_at=FUTURE)

    with bench.transaction() as connection:
        assert bench.store.promote(connection, 20) == 20
        locked = locked_rows(bench.engine, connection)
    assert 20 <= locked <= most(bench, 20)


def test_a_take_over_locks_what_it_frees(bench: Bench) -> None:
    bench.add(600)
    bench.claim(100, lease=-1.0)
    bench.claim(500)

    with bench.transaction() as connection:
        assert len(bench.store.take_over(connection, 20, max_crashes=3).freed) == 20
        locked = locked_rows(bench.engine, connection)
    assert 20 <= locked <= most(bench, 20)


def test_a_renewal_locks_what_it_renews(bench: Bench) -> None:
    bench.add(300)
    claimed = bench.claim(300)

    with bench.transaction() as connection:
        assert len(bench.store.renew(connection, pairs(claimed[100:120]), lease=60).extended) == 20
        locked = locked_rows(bench.engine, connection)
    assert 20 <= locked <= most(bench, 20)


@pytest.mark.parametrize("delete", [False, True])
def test_a_finish_locks_what_it_ends(bench: Bench, delete: bool) -> None:
    bench.add(300)
    claimed = bench.claim(300)
    ends = [Settlement(task.id, task.epoch, Status.COMPLETED, delete=delete) for task in claimed[100:120]]

    with bench.transaction() as connection:
        assert len(bench.store.settle(connection, ends)) == 20
        locked = locked_rows(bench.engine, connection)
    assert 20 <= locked <= most(bench, 20)


ENDS = {
    "completed": [{"status": Status.COMPLETED}],
    "deleted": [{"status": Status.COMPLETED, "delete": True}],
    "mixed": [{"status": Status.COMPLETED, "delete": True}, {"status": Status.FAILED, "error": "{}"}],
}


@pytest.mark.parametrize("rows", [5, 100])
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_a_finish_does_not_wait_for_rows_it_does_not_name(bench: Bench, ends: list[dict[str, Any]], rows: int) -> None:
    bench.add(rows)
    claimed = bench.claim(rows)
    settlements = [Settlement(task.id, task.epoch, **end) for task, end in zip(claimed[1:], cycle(ends), strict=False)]

    with bench.transaction() as other, bench.transaction() as connection:
        lock_each(bench, other, claimed[:1])
        impatient(bench, connection)
        assert len(bench.store.settle(connection, settlements)) == rows - 1


@pytest.mark.parametrize("rows", [5, 100])
def test_giving_back_and_taking_over_do_not_wait_for_rows_they_do_not_name(bench: Bench, rows: int) -> None:
    bench.add(3 * rows)
    kept, lost, unknown = bench.claim(rows), bench.claim(rows, lease=-1), bench.claim(rows)

    with bench.transaction() as other, bench.transaction() as connection:
        lock_each(bench, other, [kept[0], lost[0], unknown[0]])
        impatient(bench, connection)
        store = bench.store
        assert len(store.release(connection, pairs(kept[1:]))) == rows - 1
        assert len(store.take_over(connection, 3 * rows, max_crashes=3).freed) == rows - 1
        assert len(store.give_back_unknown(connection, pairs(unknown[1:]), delay=1, fail_after=60)) == rows - 1


def lock_each(bench: Bench, connection: Connection, tasks: list[Claimed]) -> None:
    for task in tasks:
        connection.execute(select(bench.table.c.epoch).where(bench.table.c.id == task.id).with_for_update())


def impatient(bench: Bench, connection: Connection) -> None:
    """Let a statement that waits for a lock fail, as it does on a worker's connection."""
    for statement in bench.adapter.worker_settings():
        connection.exec_driver_sql(statement)
