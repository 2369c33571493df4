"""No two finishes of one epoch: who is not the holder any more changes nothing."""

from __future__ import annotations

import pytest

from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import LeaseLost
from sa_taskqueue.states import Status
from sa_taskqueue.store.control import Choice
from sa_taskqueue.testing import requires
from sa_taskqueue.testing.trial import Trial
from sa_taskqueue.testing.waiting import eventually


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.SCHEDULED])
def test_a_task_is_finished_once(trial: Trial, status: Status) -> None:
    task = trial.put(trial.task(), 1)
    holder = trial.holder()
    claimed = holder.claim()
    assert holder.settle(claimed, status, delay=3600.0 if status == Status.SCHEDULED else 0.0) == {task}
    before = trial.row(task)
    assert holder.settle(claimed) == set()
    assert holder.release(claimed, delay=1.0) == set()
    assert trial.row(task) == before


def test_an_end_under_an_old_epoch_is_refused(trial: Trial) -> None:
    task = trial.put(trial.task(), 1)
    holder = trial.holder()
    [claimed] = holder.claim()
    stale = claimed._replace(epoch=claimed.epoch - 1)
    assert holder.settle([stale]) == set()
    assert trial.row(task).status != Status.COMPLETED


def test_a_finish_ends_only_what_is_still_held(trial: Trial) -> None:
    ids = trial.put_many(trial.task(), 3)
    holder = trial.holder()
    [first] = holder.claim(1)
    assert holder.settle([first]) == {first.id}
    assert holder.settle([first, *holder.claim()]) == set(ids) - {first.id}


@requires.concurrent_writers
def test_what_an_operator_cancels_its_holder_cannot_finish(db: Trial) -> None:
    task = db.put(db.task(), 1)
    holder = db.holder()
    claimed = holder.claim()
    assert db.operate(lambda control: control.cancel(Choice(ids=[task]), running=True)) == [task]
    assert holder.settle(claimed) == set()
    assert db.row(task).status == Status.CANCELLED


def test_a_renewal_keeps_what_is_held(trial: Trial) -> None:
    ids = trial.put_many(trial.task(), 3)
    holder = trial.holder()
    claimed = holder.claim()
    renewed = holder.renew(claimed, lease=600.0)
    assert renewed.extended | renewed.standing == set(ids)
    assert holder.settle(claimed) == set(ids)


def test_a_renewal_moves_the_end_of_the_lease(db: Trial) -> None:
    task = db.put(db.task(), 1)
    holder = db.holder(lease=60.0)
    claimed = holder.claim()
    before = db.row(task).reserved_until
    assert holder.renew(claimed, lease=7200.0).extended == {task}
    assert (db.row(task).reserved_until - before).total_seconds() > 6000


def test_what_was_taken_over_can_be_neither_renewed_nor_finished(db: Trial) -> None:
    task = db.put(db.task(), 1)
    late, next_one = db.holder(lease=0.0, by="late"), db.holder(by="next")
    claimed = late.claim()
    eventually(lambda: db.database.call(lambda connection: late.store.take_over(connection, 10, max_crashes=3)).freed)
    [again] = next_one.claim()
    assert again.epoch > claimed[0].epoch
    renewed = late.renew(claimed)
    assert renewed.extended | renewed.standing == set()
    assert late.settle(claimed) == set()
    assert late.release(claimed) == set()
    assert next_one.settle([again]) == {task}
    assert (db.row(task).status, db.row(task).attempt) == (Status.COMPLETED, 2)


def test_extend_of_a_task_that_was_lost_says_so(db: Trial) -> None:
    told: list[BaseException] = []

    @db.queue.task
    async def lost(context: TaskContext) -> None:
        await db.aside(db.raise_epoch, context.task.id)
        try:
            await context.aextend(600)
        except LeaseLost as error:
            told.append(error)

    task = db.put(lost)
    worker = db.drain()
    assert len(told) == worker.counts.lost == 1
    assert db.row(task).status == Status.RUNNING
