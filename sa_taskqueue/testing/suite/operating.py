"""Retention, the operator's actions, and what is refused at the start."""

from __future__ import annotations

import datetime as dt

import pytest

from sa_taskqueue.exceptions import UnsupportedReservation
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.states import Status
from sa_taskqueue.store.control import Choice
from sa_taskqueue.testing.trial import Strategy, Trial
from sa_taskqueue.testing.waiting import eventually


def test_the_tables_are_as_the_models_say(db: Trial) -> None:
    assert db.operate(lambda control: control.check()).table == db.queue.table.fullname


def test_old_tasks_are_pruned_and_others_kept(db: Trial) -> None:
    old, young, waiting = db.put_many(db.task(), 3)
    holder = db.holder()
    holder.settle([task for task in holder.claim() if task.id != waiting])
    db.write(old, finished_at=db.now() - dt.timedelta(hours=2))
    pruned = db.operate(lambda control: control.prune([Status.COMPLETED], older_than=dt.timedelta(hours=1)))
    assert pruned == 1
    assert {row.id for row in db.rows()} == {young, waiting}


def test_a_worker_prunes_by_the_queues_retention(db: Trial) -> None:
    task = db.put(db.task(), 1)
    holder = db.holder()
    holder.settle(holder.claim())
    db.write(task, finished_at=db.now() - dt.timedelta(days=30))
    with db.running():
        eventually(lambda: not db.rows())


def test_a_waiting_task_can_be_cancelled_and_revived(trial: Trial) -> None:
    task = trial.put(trial.task(), 1)
    assert trial.operate(lambda control: control.cancel(Choice(ids=[task]))) == [task]
    assert trial.holder().claim() == []
    assert trial.operate(lambda control: control.retry(Choice(ids=[task]))).ids == [task]
    trial.drain()
    assert trial.row(task).status == Status.COMPLETED


def test_statistics_count_each_queue(db: Trial) -> None:
    work = db.task()
    db.put_many(work, 3)
    db.put(work.using(queue="other", run_after=dt.timedelta(hours=1)), 1)
    found = {one.queue: dict(one.counts) for one in db.operate(lambda control: control.statistics())}
    assert {queue: {status: n for status, n in counts.items() if n} for queue, counts in found.items()} == {
        "default": {Status.NEW: 3},
        "other": {Status.SCHEDULED: 1},
    }


def test_a_strategy_that_the_database_cannot_carry_is_refused_by_name(db: Trial) -> None:
    carried = db.database.adapter.reservations
    for name in STRATEGIES.keys() - carried:
        with pytest.raises(UnsupportedReservation) as refused:
            Trial(db.database, Strategy(name, STRATEGIES[name])).drain()
        assert (refused.value.reservation, refused.value.supported) == (name, ", ".join(sorted(carried)))
    assert "lease" in carried
