"""What becomes of a task after its handler, and at a worker's stop."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import threading

import pytest

from sa_taskqueue.context import TaskContext
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Cancel, Fail, Retry, Snooze, Status
from sa_taskqueue.testing.trial import Trial
from sa_taskqueue.testing.waiting import eventually


def test_sync_and_async_handlers_run_once_each(trial: Trial) -> None:
    ran: list[int] = []

    @trial.queue.task
    def in_thread(n: int) -> None:
        ran.append(n)

    @trial.queue.task
    async def on_loop(n: int) -> None:
        await asyncio.sleep(0)
        ran.append(100 + n)

    trial.put_many(in_thread, 15)
    trial.put_many(on_loop, 15)
    worker = trial.drain()
    assert sorted(ran) == [*range(15), *range(100, 115)]
    assert {(row.status, row.attempt, row.reserved_by) for row in trial.rows()} == {(Status.COMPLETED, 1, None)}
    assert (worker.counts.claimed, worker.counts.completed, worker.counts.lost) == (30, 30, 0)


def test_an_error_is_tried_again_until_it_succeeds(trial: Trial) -> None:
    @trial.queue.task(retry=fixed(0))
    def third_time(context: TaskContext) -> None:
        if context.attempt < 3:
            raise ValueError(f"attempt {context.attempt}")

    task = trial.put(third_time)
    worker = trial.drain()
    row = trial.row(task)
    assert (row.status, row.attempt, worker.counts.retried) == (Status.COMPLETED, 3, 2)
    assert [entry["message"] for entry in json.loads(row.errors)] == ["attempt 1", "attempt 2"]
    assert row.created_at <= row.finished_at <= trial.now()


def test_a_retry_waits_for_its_delay(trial: Trial) -> None:
    @trial.queue.task(retry=fixed(3600))
    def work() -> None:
        raise ValueError("later")

    task = trial.put(work)
    trial.drain()
    row = trial.row(task)
    assert (row.status, row.attempt, row.reserved_until) == (Status.SCHEDULED, 1, None)
    assert (row.scheduled_at - trial.now()).total_seconds() > 3000


@pytest.mark.parametrize(
    ("outcome", "status", "attempt"),
    [
        (Snooze(3600), Status.SCHEDULED, 0),
        (Retry(3600), Status.SCHEDULED, 1),
        (Cancel("not needed"), Status.CANCELLED, 1),
        (Fail("for good"), Status.FAILED, 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_handler_may_say_what_is_to_become_of_its_task(
    trial: Trial, outcome: Exception, status: Status, attempt: int
) -> None:
    @trial.queue.task
    def work() -> None:
        raise outcome

    task = trial.put(work)
    trial.drain()
    row = trial.row(task)
    assert (row.status, row.attempt) == (status, attempt)
    assert (row.finished_at is None) is (status == Status.SCHEDULED)


def test_the_last_attempt_is_final(trial: Trial) -> None:
    @trial.queue.task(retry=fixed(0), max_attempts=2)
    def work() -> None:
        raise ValueError("again")

    task = trial.put(work)
    trial.drain()
    assert (trial.row(task).status, trial.row(task).attempt) == (Status.FAILED, 2)


def test_what_is_kept_for_no_time_is_deleted_at_its_end(trial: Trial) -> None:
    trial.queue.retention = {**trial.queue.retention, Status.COMPLETED: dt.timedelta(0)}  # type: ignore[assignment]

    @trial.queue.task(retry=never)
    def work(n: int) -> None:
        if n == 1:
            raise ValueError("kept")

    _gone, kept, _too = trial.put_many(work, 3)
    worker = trial.drain()
    assert worker.counts.completed == 2
    assert [row.id for row in trial.rows()] == [kept]


def test_a_stop_gives_back_what_does_not_end_in_time(trial: Trial) -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    @trial.queue.task
    def stuck() -> None:
        started.release()
        go_on.wait(60)

    @trial.queue.task
    async def sleeping() -> None:
        started.release()
        await asyncio.Event().wait()

    ids = [trial.put(stuck), trial.put(sleeping)]
    try:
        with trial.running(grace=0.1) as worker:
            assert started.acquire(timeout=60)
            assert started.acquire(timeout=60)
    finally:
        go_on.set()
    assert [(row.attempt, row.reserved_by) for row in trial.rows(ids)] == [(0, None)] * 2
    assert {row.status for row in trial.rows(ids)} <= {Status.NEW, Status.SCHEDULED}
    assert worker.counts.released == 2


def test_a_stop_waits_for_what_ends_in_time_and_begins_nothing_more(trial: Trial) -> None:
    started, go_on = threading.Event(), threading.Event()

    @trial.queue.task
    def work(n: int) -> int:
        started.set()
        assert go_on.wait(60)
        return n

    ids = trial.put_many(work, 3)
    with trial.running(queues={"default": 1}, grace=60.0) as worker:
        assert started.wait(60)
        trial.stop(worker)
        go_on.set()
    assert sorted(row.status for row in trial.rows(ids)) == [Status.COMPLETED, Status.NEW, Status.NEW]
    assert sorted((row.attempt, row.reserved_by) for row in trial.rows(ids)) == [(0, None), (0, None), (1, None)]


def test_a_handler_that_hangs_is_given_up_at_its_timeout(trial: Trial) -> None:
    go_on = threading.Event()

    @trial.queue.task(timeout=0.2, retry=never)
    def work() -> None:
        go_on.wait(60)

    task = trial.put(work)
    try:
        with trial.running():
            eventually(lambda: trial.row(task).status == Status.FAILED)
    finally:
        go_on.set()
    assert trial.error(task)["code"] == "timeout"
