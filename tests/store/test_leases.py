from __future__ import annotations

import datetime as dt
import json
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Row, select

from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Renewed, Settlement, TakenOver
from tests.store.bench import Bench, pairs

PAST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def take_over(bench: Bench, limit: int = 100, max_crashes: int = 3) -> TakenOver:
    with bench.transaction() as connection:
        return bench.store.take_over(connection, limit, max_crashes=max_crashes)


def renew(bench: Bench, *claimed: Claimed, lease: float = 60.0) -> Renewed:
    with bench.transaction() as connection:
        return bench.store.renew(connection, pairs(claimed), lease=lease)


def test_a_renewal_moves_the_end_of_the_lease(every_bench: Bench) -> None:
    every_bench.add(3)
    one, two, three = every_bench.claim(lease=60)
    before = every_bench.row(one.id).reserved_until

    assert renew(every_bench, one, two, lease=3600) == ({one.id, two.id}, set())

    assert every_bench.row(one.id).reserved_until - before > dt.timedelta(minutes=50)
    assert every_bench.row(three.id).reserved_until - before < dt.timedelta(minutes=50)


def test_a_renewal_under_an_old_epoch_is_refused(every_bench: Bench) -> None:
    every_bench.add(2)
    one, two = every_bench.claim()

    assert renew(every_bench, one._replace(epoch=7), two) == ({two.id}, set())


def test_an_ended_lease_that_nobody_took_over_can_be_renewed(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim(lease=-5.0)

    assert renew(every_bench, task) == ({task.id}, set())
    assert take_over(every_bench) == ([], [])


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_renewal_does_not_wait_for_a_row_and_still_holds_it(bench: Bench) -> None:
    bench.add(2)
    one, two = bench.claim()

    with bench.transaction() as other:
        other.execute(select(bench.table.c.id).where(bench.table.c.id == one.id).with_for_update())
        assert renew(bench, one, two) == ({two.id}, {one.id})


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_locked_row_of_another_epoch_is_not_held(bench: Bench) -> None:
    bench.add()
    [task] = bench.claim()

    with bench.transaction() as other:
        other.execute(select(bench.table.c.id).where(bench.table.c.id == task.id).with_for_update())
        assert renew(bench, task._replace(epoch=9)) == (set(), set())


def test_a_released_task_is_new_with_its_attempt_back(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    with every_bench.transaction() as connection:
        assert every_bench.store.release(connection, pairs([task])) == {task.id}

    row = every_bench.row(task.id)
    assert (row.status, row.attempt, row.epoch) == (Status.NEW, 0, 2)
    assert (row.reserved_until, row.reserved_by) == (None, None)
    assert row.scheduled_at == task.scheduled_at


def test_a_task_can_be_released_for_later(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    with every_bench.transaction() as connection:
        every_bench.store.release(connection, pairs([task]), delay=600)

    row = every_bench.row(task.id)
    assert row.status == Status.SCHEDULED
    assert row.scheduled_at - row.created_at > dt.timedelta(seconds=590)


def test_a_lost_task_is_not_released(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    with every_bench.transaction() as connection:
        assert every_bench.store.release(connection, [(task.id, task.epoch + 1)]) == set()
    assert every_bench.statuses() == {task.id: Status.RUNNING}


def test_a_task_of_an_unknown_name_waits_and_is_not_new(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    with every_bench.transaction() as connection:
        given = every_bench.store.give_back_unknown(connection, pairs([task]), delay=30, fail_after=3600)

    row = every_bench.row(task.id)
    assert given == {task.id}
    assert (row.status, row.attempt, row.epoch) == (Status.SCHEDULED, 0, 2)
    assert json.loads(row.error)["code"] == "unknown_task"
    assert row.scheduled_at > row.created_at


def look_in_vain(bench: Bench, task: UUID, *, fail_after: float = 3600) -> Row[Any]:
    """One claim by a worker that does not know the name, and what the row is then."""
    bench.change([task], status=Status.NEW)
    [claimed] = bench.claim()
    with bench.transaction() as connection:
        bench.store.give_back_unknown(connection, pairs([claimed]), delay=30, fail_after=fail_after)
    return bench.row(task)


def test_a_task_whose_name_nobody_knew_for_too_long_fails(every_bench: Bench) -> None:
    [task] = every_bench.add(unique_key="k", unique_hash=b"k" * 32, unique_until="end")
    first = json.loads(look_in_vain(every_bench, task).error)
    every_bench.change([task], error=json.dumps({**first, "since": PAST.isoformat()}))

    row = look_in_vain(every_bench, task)

    assert row.status == Status.FAILED
    assert json.loads(row.error)["code"] == "unknown_task"
    assert row.finished_at is not None
    assert row.unique_hash is None


def test_a_task_made_long_ago_is_not_unknown_for_long_at_its_first_look(every_bench: Bench) -> None:
    [task] = every_bench.add(created_at=PAST, scheduled_at=PAST)

    assert look_in_vain(every_bench, task).status == Status.SCHEDULED


def test_the_first_look_is_remembered_over_the_later_ones(every_bench: Bench) -> None:
    [task] = every_bench.add()
    first = json.loads(look_in_vain(every_bench, task).error)

    for _ in range(2):
        assert json.loads(look_in_vain(every_bench, task).error)["since"] == first["since"]


def test_whoever_else_acts_on_the_task_ends_the_count(every_bench: Bench) -> None:
    [task] = every_bench.add()
    first = json.loads(look_in_vain(every_bench, task).error)
    every_bench.change([task], error=json.dumps({**first, "since": PAST.isoformat()}), status=Status.NEW)
    [claimed] = every_bench.claim()
    with every_bench.transaction() as connection:
        every_bench.store.settle(connection, [Settlement(task, claimed.epoch, Status.SCHEDULED)])

    assert look_in_vain(every_bench, task).status == Status.SCHEDULED


@pytest.mark.parametrize("error", ["[]", "7", '{"code": "unknown_task", "next_epoch": 1, "since": 3}'])
def test_an_error_that_somebody_else_wrote_does_not_hinder_the_give_back(bench: Bench, error: str) -> None:
    [task] = bench.add(error=error)

    assert look_in_vain(bench, task).status == Status.SCHEDULED


def test_only_ended_leases_are_taken_over(every_bench: Bench) -> None:
    dead = every_bench.add(2)
    every_bench.claim(lease=-1.0)
    every_bench.add(2)
    every_bench.claim()

    taken = take_over(every_bench)

    assert (set(taken.freed), taken.failed) == (set(dead), [])
    row = every_bench.row(dead[0])
    assert (row.status, row.attempt, row.crashes, row.epoch) == (Status.NEW, 1, 1, 2)
    assert (row.reserved_until, row.reserved_by, row.finished_at) == (None, None, None)
    assert every_bench.count(Status.RUNNING) == 2


def test_what_is_taken_over_becomes_ready_now(every_bench: Bench) -> None:
    [task] = every_bench.add(ready_at=PAST)
    every_bench.claim(lease=-1.0)

    take_over(every_bench)

    assert every_bench.row(task).ready_at > PAST


@pytest.mark.parametrize(("crashes", "max_attempts"), [(2, 10), (0, 1)], ids=["crashes", "attempts"])
def test_at_a_limit_a_lost_task_fails(every_bench: Bench, crashes: int, max_attempts: int) -> None:
    key: dict[str, Any] = {"unique_key": "k", "unique_hash": b"k" * 32, "unique_until": "end"}
    [task] = every_bench.add(crashes=crashes, max_attempts=max_attempts, **key)
    every_bench.claim(lease=-1.0)

    assert take_over(every_bench) == ([], [task])

    row = every_bench.row(task)
    assert (row.status, row.crashes, row.epoch) == (Status.FAILED, crashes + 1, 2)
    assert json.loads(row.error)["code"] == "lost_worker"
    assert row.finished_at is not None
    assert row.unique_hash is None


def test_a_take_over_is_bounded(every_bench: Bench) -> None:
    every_bench.add(5)
    every_bench.claim(lease=-1.0)

    assert [len(take_over(every_bench, limit=3).freed) for _ in range(3)] == [3, 2, 0]


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_take_over_does_not_wait_for_a_row_that_is_being_finished(bench: Bench) -> None:
    bench.add(2)
    one, two = bench.claim(lease=-1.0)

    with bench.transaction() as finishing:
        finishing.execute(select(bench.table.c.id).where(bench.table.c.id == one.id).with_for_update())
        assert take_over(bench).freed == [two.id]
