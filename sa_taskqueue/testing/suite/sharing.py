"""Several holders: what they claim is disjoint, nobody waits for another, and what a dead one held is done."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from sa_taskqueue.context import TaskContext
from sa_taskqueue.states import Status
from sa_taskqueue.testing import requires
from sa_taskqueue.testing.holder import Holder
from sa_taskqueue.testing.models import SuiteEffect
from sa_taskqueue.testing.trial import Trial
from sa_taskqueue.testing.waiting import eventually

HOLDERS = 4


@requires.concurrent_writers
def test_holders_that_claim_at_once_take_different_tasks_and_all_of_them(trial: Trial) -> None:
    ids = trial.put_many(trial.task(), 60)
    holders = [trial.holder(by=str(n)) for n in range(HOLDERS)]

    def all_it_can(holder: Holder) -> list[UUID]:
        done: list[UUID] = []
        while len(done) < len(ids) and (Status.NEW in trial.statuses() or Status.RUNNING in trial.statuses()):
            tasks = holder.claim(5)
            done += holder.settle(tasks) if tasks else []
        return done

    with ThreadPoolExecutor(HOLDERS) as threads:
        done = Counter(task for tasks in threads.map(all_it_can, holders) for task in tasks)
    assert done == Counter(ids)
    assert {(row.status, row.attempt, row.epoch) for row in trial.rows()} == {(Status.COMPLETED, 1, 1)}


def test_what_one_holds_no_other_is_given(trial: Trial) -> None:
    ids = trial.put_many(trial.task(), 4)
    first, second = trial.holder(by="a"), trial.holder(by="b")
    assert {task.id for task in first.claim()} == set(ids)
    assert second.claim() == []


@requires.skip_locked
@requires.row_locks
def test_a_claim_does_not_wait_for_a_row_that_somebody_has_locked(db: Trial) -> None:
    locked, free = db.put_many(db.task(), 2)
    lock = db.database.adapter.lock(db.queue.table)
    assert lock is not None
    holder, somebody = db.holder(), db.database.line()
    somebody.run(lambda connection: connection.execute(lock, {"ids": [locked]}).all())
    try:
        assert [task.id for task in holder.claim()] == [free]
    finally:
        somebody.close()
    assert [task.id for task in eventually(holder.claim)] == [locked]


@requires.concurrent_writers
def test_a_claim_does_not_see_what_is_not_committed(trial: Trial) -> None:
    new = trial.task().new(1)
    producer = trial.database.line()
    row = {"id": new.id, "name": new.name, "body": new.body}
    producer.run(lambda connection: connection.execute(trial.queue.table.insert(), row))
    holder = trial.holder()
    assert holder.claim() == []
    if holder.in_work:
        holder.claims.commit()
    producer.commit()
    producer.close()
    assert [task.id for task in holder.claim()] == [new.id]


def test_what_a_dead_holder_held_is_taken_by_another(trial: Trial) -> None:
    ids = trial.put_many(trial.task(), 3)
    dead = trial.holder(lease=0.3, by="dead")
    assert {task.id for task in dead.claim()} == set(ids)
    dead.close()
    with trial.running(lease=1.0, poll_max=0.2):
        eventually(lambda: trial.statuses() == {Status.COMPLETED: 3})


def test_a_lease_that_has_not_ended_is_not_taken_over(db: Trial) -> None:
    db.put(db.task(), 1)
    holder = db.holder(lease=600.0)
    holder.claim()
    taken = db.database.call(lambda connection: holder.store.take_over(connection, 10, max_crashes=3))
    assert (taken.freed, taken.failed) == ([], [])
    assert db.statuses() == {Status.RUNNING: 1}


def test_a_lease_that_has_ended_is_taken_over_and_the_crash_counted(db: Trial) -> None:
    task = db.put(db.task(), 1)
    holder = db.holder(lease=0.0)
    [claimed] = holder.claim()
    taken = eventually(
        lambda: db.database.call(lambda connection: holder.store.take_over(connection, 10, max_crashes=3)).freed
    )
    assert taken == [task]
    row = db.row(task)
    assert (row.status, row.attempt, row.crashes) == (Status.NEW, 1, 1)
    assert row.epoch > claimed.epoch


def test_a_task_that_killed_its_worker_too_often_is_failed(db: Trial) -> None:
    task = db.put(db.task(), 1)
    holder = db.holder(lease=0.0)
    holder.claim()
    failed = eventually(
        lambda: db.database.call(lambda connection: holder.store.take_over(connection, 10, max_crashes=1)).failed
    )
    assert failed == [task]
    assert (db.row(task).status, db.error(task)["code"]) == (Status.FAILED, "lost_worker")


def test_two_workers_do_each_task_once(trial: Trial) -> None:
    @trial.queue.task
    def work(context: TaskContext, n: int) -> None:
        context.session.add(SuiteEffect(note=f"{n:03}"))

    @trial.queue.task
    async def async_work(context: TaskContext, n: int) -> None:
        context.async_session.add(SuiteEffect(note=f"{n:03}"))

    trial.put_many(async_work if trial.database.is_async else work, 60)
    with trial.running(batch=5), trial.running(batch=5):
        eventually(lambda: trial.statuses() == {Status.COMPLETED: 60})
    assert trial.effects() == [f"{n:03}" for n in range(60)]
    assert {row.attempt for row in trial.rows()} == {1}
