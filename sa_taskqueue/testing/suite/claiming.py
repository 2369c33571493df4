"""What a claim takes, in which order, and what it leaves alone."""

from __future__ import annotations

import json
from uuid import UUID

from sa_taskqueue.states import Status
from sa_taskqueue.testing.holder import Holder
from sa_taskqueue.testing.trial import Trial


def one_by_one(holder: Holder, tasks: int) -> list[UUID]:
    """The ids in the order of so many claims of one task each."""
    ids = []
    for _ in range(tasks):
        [task] = holder.claim(1)
        ids.append(task.id)
        holder.settle([task])
    return ids


def test_the_smaller_priority_goes_first(trial: Trial) -> None:
    work = trial.task()
    last, middle, first = (trial.put(work.using(priority=priority), priority) for priority in (100, 0, -100))
    assert one_by_one(trial.holder(), 3) == [first, middle, last]


def test_no_more_than_asked_for_are_taken(trial: Trial) -> None:
    ids = trial.put_many(trial.task(), 7)
    first, second = trial.holder(by="a"), trial.holder(by="b")
    some = first.claim(3)
    rest = second.claim(10)
    assert (len(some), len(rest)) == (3, 4)
    assert {task.id for task in [*some, *rest]} == set(ids)


def test_only_its_own_queue_is_claimed(trial: Trial) -> None:
    work = trial.task()
    mine, _other = trial.put(work.using(queue="mine"), 1), trial.put(work.using(queue="other"), 2)
    holder = trial.holder()
    assert [task.id for task in holder.claim(queue="mine")] == [mine]
    assert trial.holder(by="b").claim(queue="nobody") == []


def test_a_claim_shows_the_task_as_its_holder_has_it(trial: Trial) -> None:
    work = trial.task()
    task = trial.put(work.using(priority=5, headers={"tenant": "acme"}, max_attempts=4), 7)
    [claimed] = trial.holder().claim()
    assert (claimed.id, claimed.name, claimed.queue, claimed.priority) == (task, "work", "default", 5)
    assert (claimed.attempt, claimed.max_attempts, claimed.crashes) == (1, 4, 0)
    assert (json.loads(claimed.body), json.loads(claimed.headers or "")) == ({"n": 7}, {"tenant": "acme"})
    assert claimed.created_at == trial.row(task).created_at
    assert (claimed.error, claimed.errors) == (None, None)


def test_tasks_that_have_ended_are_not_claimed(trial: Trial) -> None:
    trial.put_many(trial.task(), 3)
    holder = trial.holder()
    completed, failed, cancelled = holder.claim()
    for task, status in ((completed, Status.COMPLETED), (failed, Status.FAILED), (cancelled, Status.CANCELLED)):
        holder.settle([task], status)
    assert holder.claim() == []
    assert trial.statuses() == {Status.COMPLETED: 1, Status.FAILED: 1, Status.CANCELLED: 1}


def test_what_was_given_back_is_claimed_again_and_the_attempt_is_not_counted(trial: Trial) -> None:
    task = trial.put(trial.task(), 1)
    holder = trial.holder()
    assert holder.release(holder.claim()) == {task}
    row = trial.row(task)
    assert (row.status, row.attempt, row.reserved_by) == (Status.NEW, 0, None)
    [again] = holder.claim()
    assert (again.id, again.attempt) == (task, 1)


def test_what_was_given_back_for_later_is_scheduled(trial: Trial) -> None:
    task = trial.put(trial.task(), 1)
    holder = trial.holder()
    assert holder.release(holder.claim(), delay=3600.0) == {task}
    assert (trial.row(task).status, trial.row(task).attempt) == (Status.SCHEDULED, 0)
    assert holder.claim() == []


def test_a_lease_says_who_holds_the_task_until_when(db: Trial) -> None:
    task = db.put(db.task(), 1)
    before = db.now()
    db.holder(lease=600.0, by="worker 7").claim()
    row = db.row(task)
    assert (row.status, row.reserved_by) == (Status.RUNNING, "worker 7")
    assert 540 < (row.reserved_until - before).total_seconds() < 660
