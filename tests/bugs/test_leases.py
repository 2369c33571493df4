"""A worker that lost its lease changes nothing, and a lease ends only for who does not renew it."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, delete, func, select, update

from sa_taskqueue import telemetry
from sa_taskqueue.context import TaskContext
from sa_taskqueue.control import Choice, Control
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import fixed
from sa_taskqueue.states import Cancel, Complete, Fail, Retry, Snooze, Status
from sa_taskqueue.store import Settlement
from sa_taskqueue.store.control import cancel
from sa_taskqueue.worker import Worker
from tests.models import Effect
from tests.store.bench import Bench, pairs
from tests.store.conftest import bench
from tests.support import eventually
from tests.worker.support import Database, drain, running

__all__ = ["bench"]

# Every way in which a handler may end its task.
ENDS: dict[str, Callable[[], object]] = {
    "returns": lambda: None,
    "Complete": lambda: Complete("done"),
    "Retry": lambda: Retry(0),
    "Snooze": lambda: Snooze(0),
    "Cancel": lambda: Cancel("no"),
    "Fail": lambda: Fail("no"),
}


def _completed_by_another(db: Database, context: TaskContext) -> None:
    own = db.table.c.id == context.task.id
    with db.engine.begin() as connection:
        ended = {"status": Status.COMPLETED, "epoch": db.table.c.epoch + 2, "attempt": 2, "result": '"theirs"'}
        connection.execute(update(db.table).where(own).values(ended))


def _deleted(db: Database, context: TaskContext) -> None:
    with db.engine.begin() as connection:
        connection.execute(delete(db.table).where(db.table.c.id == context.task.id))


@pytest.mark.parametrize("lose", [_completed_by_another, _deleted])
def test_no_end_of_a_late_worker_changes_anything(
    engine: Engine, db: Database, queue: TaskQueue, lose: Callable[[Database, TaskContext], None]
) -> None:
    """rails/solid_queue#589, #763: neither success nor failure, retry or snooze, after another worker has finished."""
    events: list[telemetry.Event] = []

    @queue.task(retry=fixed(0), store_result=True)
    def work(context: TaskContext, end: str) -> object:
        lose(db, context)
        return ENDS[end]()

    @queue.task(retry=fixed(0))
    def fail(context: TaskContext) -> None:
        lose(db, context)
        raise ValueError("late")

    ids = [db.put(work, end=end) for end in ENDS] + [db.put(fail)]
    unsubscribe = telemetry.subscribe(events.append)
    try:
        worker = drain(Worker(queue, engine, drain=True))
    finally:
        unsubscribe()
    told = {one for event in events if isinstance(event, telemetry.LeasesLost) for one in event.ids}
    assert (told, worker.counts.lost, worker.counts.ended) == (set(ids), len(ids), 0)
    assert [event for event in events if isinstance(event, telemetry.TaskEnded)] == []
    if lose is _completed_by_another:
        ends = {(row.status, row.attempt, row.result, row.error) for row in db.rows(ids)}
        assert ends == {(Status.COMPLETED, 2, '"theirs"', None)}
    else:
        assert db.statuses() == {}


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_a_late_worker_publishes_no_work_of_its_transaction(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """rails/solid_queue#763: what a handler wrote and enqueued in its session is gone with its lease."""

    @queue.task
    def follow_up() -> None: ...

    @queue.task
    def work(context: TaskContext, end: str) -> object:
        db.raise_epoch(context.task.id)
        context.session.add(Effect(task_id=str(context.task.id), note=end))
        context.session.enqueue(follow_up)
        context.session.flush()
        return ENDS[end]()

    for end in ENDS:
        db.put(work, end=end)
    worker = drain(Worker(queue, engine, drain=True))
    assert worker.counts.lost == len(ENDS)
    assert db.effects() == []
    assert db.statuses() == {Status.RUNNING: len(ENDS)}


@pytest.mark.servers("sqlite", "postgresql")
def test_leases_are_renewed_until_the_last_handler_has_ended(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """kagkarlsson/db-scheduler#365, rails/solid_queue#568: a worker that is to stop must not let its leases run out."""
    started, go_on = threading.Event(), threading.Event()

    @queue.task
    def work() -> None:
        started.set()
        assert go_on.wait(60)

    task_id = db.put(work)
    stopping, rival = Worker(queue, engine, lease=3, grace=600), Worker(queue, engine, lease=3)
    with running(stopping):
        assert started.wait(30)
        stopping.stop()
        until = db.row(task_id).reserved_until
        with running(rival):  # there to take the task over
            eventually(lambda: db.row(task_id).reserved_until > until + dt.timedelta(seconds=3))
            rival.stop()
        go_on.set()
    row = db.row(task_id)
    assert (row.status, row.attempt, row.crashes, rival.counts.claimed) == (Status.COMPLETED, 1, 0, 0)
    assert (stopping.counts.lost, stopping.counts.completed) == (0, 1)


@pytest.mark.servers("sqlite", "postgresql")
def test_a_task_cancelled_while_its_worker_stops_is_told_so(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """procrastinate#1598: the wish to cancel a task is heard during the drain as well."""
    started, told = threading.Event(), threading.Event()

    @queue.task
    def work(context: TaskContext) -> None:
        started.set()
        assert context.lost.wait(60)
        told.set()

    task_id = db.put(work)
    worker = Worker(queue, engine, lease=2, grace=600)

    async def cancel_it() -> None:
        async with Control(queue, db.engine) as control:
            assert await control.cancel(Choice(ids=[task_id]), running=True) == [task_id]

    with running(worker):
        assert started.wait(30)
        worker.stop()
        in_a_thread = threading.Thread(target=lambda: asyncio.run(cancel_it()))
        in_a_thread.start()
        in_a_thread.join(30)
        assert told.wait(30)
    assert (db.row(task_id).status, worker.counts.lost) == (Status.CANCELLED, 1)


@pytest.mark.servers("sqlite", "postgresql", "mysql", "mariadb")
def test_a_cancel_that_comes_before_the_end_wins(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """dbos-transact-py#731: a late outcome must not overwrite a task that was cancelled."""

    @queue.task(retry=fixed(0))
    def work(context: TaskContext, n: int) -> None:
        _cancel(db, context)
        if n:
            raise ValueError("late")

    db.put_many(work, 2)
    worker = drain(Worker(queue, engine, drain=True))
    assert db.statuses() == {Status.CANCELLED: 2}
    assert worker.counts.lost == 2


def _cancel(db: Database, context: TaskContext) -> None:
    with db.engine.begin() as connection:
        assert cancel(connection, db.table, [context.task.id], running=True) == [context.task.id]


def test_a_worker_with_the_name_of_a_dead_one_does_not_keep_its_tasks(bench: Bench) -> None:
    """procrastinate-org/procrastinate#1518: a lease belongs to one claim, not to whoever bears the worker's name."""
    dead = bench.add(2)
    bench.claim(by="worker-1", lease=1)
    bench.change(dead, reserved_until=bench.table.c.created_at)
    alive = bench.add(1)
    claimed = bench.claim(by="worker-1")
    with bench.transaction() as connection:
        bench.store.renew(connection, pairs(claimed), lease=60)
        assert sorted(bench.store.take_over(connection, 10, max_crashes=3).freed) == sorted(dead)
    assert bench.row(alive[0]).status == Status.RUNNING


def test_the_epoch_alone_tells_two_workers_of_one_name_apart(bench: Bench) -> None:
    """procrastinate-org/procrastinate#1518: two processes configured with one name must not finish for each other."""
    [task] = bench.add(1)
    first = bench.claim(by="worker-1")
    bench.change([task], reserved_until=bench.table.c.created_at)
    with bench.transaction() as connection:
        bench.store.take_over(connection, 10, max_crashes=3)
    second = bench.claim(by="worker-1")
    with bench.transaction() as connection:
        assert not bench.store.release(connection, pairs(first))
        assert not bench.store.renew(connection, pairs(first), lease=60).extended
        assert bench.store.renew(connection, pairs(second), lease=60).extended == {task}


@pytest.mark.parametrize("epoch", [2**31 - 2, 2**53 + 1, 2**62])
def test_epochs_beyond_32_and_53_bits_are_told_apart(bench: Bench, epoch: int) -> None:
    """janbjorge/pgqueuer#676: a cast to int fails years later, and then even at the shutdown."""
    ids = bench.add(3)
    bench.change(ids, epoch=epoch)
    claimed = bench.claim()
    assert {task.epoch for task in claimed} == {epoch + 1}
    stale = [(task, number - 1) for task, number in pairs(claimed)]
    with bench.transaction() as connection:
        assert not bench.store.renew(connection, stale, lease=60).standing
        assert bench.store.renew(connection, pairs(claimed), lease=60).extended == set(ids)
        assert bench.store.release(connection, pairs(claimed)[:1]) == {claimed[0].id}
        ends = [
            Settlement(claimed[1].id, claimed[1].epoch, Status.COMPLETED),
            Settlement(claimed[2].id, claimed[2].epoch - 1, Status.COMPLETED),
        ]
        assert bench.store.settle(connection, ends) == {claimed[1].id}
    with bench.engine.connect() as connection:
        assert connection.scalar(select(func.max(bench.table.c.epoch))) == epoch + 2


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_tasks_taken_over_are_claimed_by_their_priority_before_fresh_ones(bench: Bench) -> None:
    """janbjorge/pgqueuer#684: what comes back from a dead worker keeps its place among the new."""
    urgent = bench.add(3, priority=-10)
    memory = bench.store.claim_memory()

    def claim(limit: int) -> list[Any]:
        with bench.transaction() as connection:
            claimed = bench.store.claim(connection, "mail", limit, lease=60, by="w", memory=memory)
            return [task.id for task in claimed]

    assert claim(3) == urgent
    bench.add(50)
    bench.change(urgent, reserved_until=bench.table.c.created_at)
    with bench.transaction() as connection:
        bench.store.take_over(connection, 10, max_crashes=3)
    assert sorted(claim(3)) == sorted(urgent)
