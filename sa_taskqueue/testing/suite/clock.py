"""Time is the database's clock, stored as UTC with microseconds; a client's clock decides nothing."""

from __future__ import annotations

import datetime as dt
import threading
import uuid

from sa_taskqueue.states import Status
from sa_taskqueue.testing.trial import Trial
from sa_taskqueue.testing.waiting import eventually

#: So long an INSERT may take between two readings of the clock in it.
SLACK = dt.timedelta(seconds=60)


def test_created_at_is_read_from_the_database_clock(db: Trial) -> None:
    @db.queue.task
    def work() -> None: ...

    before = db.now()
    row = db.row(db.put(work))
    assert before <= row.created_at <= db.now()
    assert before <= row.ready_at <= db.now()
    assert row.created_at.utcoffset() == dt.timedelta(0)


def test_a_delay_counts_from_the_database_clock(db: Trial) -> None:
    @db.queue.task
    def work() -> None: ...

    row = db.row(db.put(work.using(run_after=dt.timedelta(hours=1.5))))
    assert row.status == Status.SCHEDULED
    assert abs(row.scheduled_at - row.created_at - dt.timedelta(hours=1.5)) < SLACK


def test_a_moment_keeps_its_microseconds_in_utc(db: Trial) -> None:
    @db.queue.task
    def work() -> None: ...

    india = dt.timezone(dt.timedelta(hours=5, minutes=30))
    moments = [
        dt.datetime(2031, 3, 30, 2, 30, 0, 123457, tzinfo=india),
        dt.datetime(2031, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        dt.datetime(2031, 1, 1, tzinfo=dt.UTC),
    ]
    rows = db.rows([db.put(work.using(run_after=moment)) for moment in moments])
    assert [row.scheduled_at for row in rows] == moments
    assert {row.scheduled_at.utcoffset() for row in rows} == {dt.timedelta(0)}


def test_a_moment_that_has_passed_is_due(trial: Trial) -> None:
    @trial.queue.task
    def work() -> None: ...

    task = trial.put(work.using(run_after=dt.datetime(2001, 1, 1, tzinfo=dt.UTC)))
    with trial.running(poll_max=0.2):
        trial.eventually(task, Status.COMPLETED)


def test_a_scheduled_task_is_not_claimed_before_it_is_due(trial: Trial) -> None:
    @trial.queue.task
    def work(n: int) -> None: ...

    later = trial.put(work.using(run_after=dt.timedelta(hours=1)), 1)
    now = trial.put(work, 2)
    assert [task.id for task in trial.holder().claim()] == [now]
    assert trial.row(later).status == Status.SCHEDULED


def test_a_scheduled_task_runs_when_it_is_due(trial: Trial) -> None:
    ran = threading.Event()

    @trial.queue.task
    def work() -> None:
        ran.set()

    task = trial.put(work.using(run_after=dt.timedelta(seconds=0.2)))
    with trial.running():
        trial.eventually(task, Status.COMPLETED)
    assert ran.is_set()


def test_promotion_makes_due_tasks_new_in_the_order_of_priority(db: Trial) -> None:
    @db.queue.task
    def work(n: int) -> None: ...

    moment = dt.timedelta(seconds=0.05)
    due = [db.put(work.using(priority=priority, run_after=moment), priority) for priority in (3, -2, 0)]
    future = db.put(work.using(run_after=dt.timedelta(hours=1)), 0)
    assert db.statuses() == {Status.SCHEDULED: 4}
    store = db.holder().store
    eventually(lambda: db.now() > max(row.scheduled_at for row in db.rows(due)))
    order: list[int] = []
    while len(order) < len(due):
        eventually(lambda: db.database.call(lambda connection: store.promote(connection, 1)))
        order += [row.priority for row in db.rows(due) if row.status == Status.NEW and row.priority not in order]
    assert order == [-2, 0, 3]
    assert db.row(future).status == Status.SCHEDULED
    until = db.database.call(store.next_due)
    assert until is not None
    assert 0 < until <= 3600


def test_the_time_in_an_id_decides_nothing(db: Trial) -> None:
    """It is the client's, which may be wrong by years."""

    @db.queue.task
    def work(n: int) -> None: ...

    future, past = uuid.UUID("7fffffff-ffff-7000-8000-000000000001"), uuid.UUID("00000000-0001-7000-8000-000000000001")
    first = db.put(work.using(id=future), 1)
    eventually(lambda: db.now() > db.row(first).ready_at)
    second = db.put(work.using(id=past), 2)
    holder = db.holder()
    assert [task.id for _ in range(2) for task in holder.claim(1)] == [first, second]
