"""What AdvisoryLock and ReservationTable promise alike: nothing is written to the task until it ends."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, Table, func, select, text, update

from sa_taskqueue.exceptions import UnsupportedReservation
from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import AdvisoryLock, Reservation, ReservationTable
from sa_taskqueue.retry import fixed
from sa_taskqueue.states import Snooze, Status
from sa_taskqueue.worker import Worker
from tests.reservation.conftest import MakeHolder
from tests.worker.support import Database, drain

STRATEGIES: list[type[Reservation]] = [AdvisoryLock, ReservationTable]

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

strategies = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)


@pytest.fixture
def ids(db: Database, queue: TaskQueue) -> list[UUID]:
    @queue.task
    def work(n: int) -> None: ...

    return db.put_many(work, 10)


@strategies
def test_two_holders_never_get_the_same_task(
    make_holder: MakeHolder, strategy: type[Reservation], ids: list[UUID]
) -> None:
    mine = make_holder(strategy()).claim(6)
    others = make_holder(strategy()).claim(10)
    assert (len(mine), len(others)) == (6, 4)
    assert {task.id for task in [*mine, *others]} == set(ids)


@strategies
def test_a_claim_writes_nothing_to_the_task(
    make_holder: MakeHolder, strategy: type[Reservation], db: Database, ids: list[UUID]
) -> None:
    before = db.rows(ids)
    claimed = make_holder(strategy()).claim(10)
    assert db.rows(ids) == before
    assert {(task.attempt, task.epoch) for task in claimed} == {(1, 0)}


@strategies
def test_a_holder_is_not_given_what_it_holds(
    make_holder: MakeHolder, strategy: type[Reservation], ids: list[UUID]
) -> None:
    holder = make_holder(strategy())
    first, second = holder.claim(6), holder.claim(10)
    assert len(first) + len(second) == len({task.id for task in [*first, *second]}) == 10


@strategies
def test_the_finish_counts_the_attempt_and_raises_the_epoch(
    make_holder: MakeHolder, strategy: type[Reservation], db: Database, ids: list[UUID]
) -> None:
    holder = make_holder(strategy())
    claimed = holder.claim(10)
    assert holder.complete(claimed) == set(ids)
    assert {(row.status, row.attempt, row.epoch) for row in db.rows(ids)} == {(Status.COMPLETED, 1, 1)}
    assert holder.claim(10) == []


@strategies
def test_the_second_finish_of_an_epoch_is_refused(
    make_holder: MakeHolder, strategy: type[Reservation], db: Database, ids: list[UUID]
) -> None:
    holder = make_holder(strategy())
    claimed = holder.claim(2)
    db.raise_epoch(claimed[0].id)
    assert holder.renew(claimed).extended == {claimed[1].id}
    assert holder.complete(claimed) == {claimed[1].id}


@strategies
def test_a_task_that_ended_between_the_look_and_the_reservation_is_dropped(
    make_holder: MakeHolder, strategy: type[Reservation], ids: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, late = make_holder(strategy()), make_holder(strategy())
    assert first.complete(first.claim(4))
    first.claim(0)  # frees the reservations of what has ended
    seen: Any = late.reservation if strategy is AdvisoryLock else late.reservation._reservations  # type: ignore[attr-defined]
    looked_at = seen._store.unmarked if strategy is AdvisoryLock else seen
    monkeypatch.setattr(looked_at, "candidates", lambda *_args, **_options: sorted(ids))
    claimed = late.claim(10)
    assert len(claimed) == 6
    assert late.complete(claimed) == {task.id for task in claimed}


@strategies
def test_a_released_task_is_claimed_again_and_its_late_end_refused(
    make_holder: MakeHolder, strategy: type[Reservation], ids: list[UUID]
) -> None:
    holder, other = make_holder(strategy()), make_holder(strategy())
    claimed = holder.claim(10)
    assert holder.release(claimed) == set(ids)
    holder.reservation.end(holder.connection)
    again = other.claim(10)
    assert {(task.id, task.attempt, task.epoch) for task in again} == {(task, 1, 1) for task in ids}
    assert holder.complete(claimed) == set()
    assert other.complete(again) == set(ids)


@pytest.mark.servers("postgresql")
@strategies
def test_a_row_that_the_driver_cannot_fetch_fails_alone(
    make_holder: MakeHolder, strategy: type[Reservation], engine: Engine, tasks: Table, ids: list[UUID]
) -> None:
    with engine.begin() as connection:
        connection.execute(update(tasks).where(tasks.c.id == ids[3]).values(scheduled_at=text("'infinity'")))
    claimed = make_holder(strategy()).claim(10)
    assert {task.id for task in claimed} == {*ids} - {ids[3]}
    with engine.connect() as connection:
        row = connection.execute(select(tasks.c.status, tasks.c.error).where(tasks.c.id == ids[3])).one()
    assert row.status == Status.FAILED
    assert "undecodable" in row.error


@strategies
def test_retries_snoozes_and_unknown_names(
    worker_engine: Any, db: Database, queue: TaskQueue, strategy: type[Reservation]
) -> None:
    fails, snoozes = [], []

    @queue.task(retry=fixed(0), max_attempts=3)
    def failing() -> None:
        fails.append(1)
        raise ValueError("again")

    @queue.task
    def snoozing() -> None:
        snoozes.append(1)
        if len(snoozes) < 3:
            raise Snooze(0)

    failing_id, snoozing_id = db.put(failing), db.put(snoozing)
    unknown_id = db.put(queue.named("nobody"))
    worker = drain(Worker(queue, worker_engine, reservation=strategy(), drain=True))
    assert (len(fails), len(snoozes)) == (3, 3)
    rows = {row.id: (row.status, row.attempt) for row in db.rows([failing_id, snoozing_id, unknown_id])}
    assert rows == {
        failing_id: (Status.FAILED, 3),
        snoozing_id: (Status.COMPLETED, 1),
        unknown_id: (Status.SCHEDULED, 0),
    }
    assert worker.counts.unknown == 1


@strategies
def test_two_workers_drain_without_a_double_run(
    worker_engine: Any, engine: Engine, db: Database, queue: TaskQueue, strategy: type[Reservation]
) -> None:
    """20,000 tasks by two workers ran once each on every server (2026-11-30); here fewer, for the time it takes."""
    runs: list[int] = []

    @queue.task
    def work(n: int) -> None:
        runs.append(n)

    db.put_many(work, 1500)
    workers = [Worker(queue, one, reservation=strategy(), drain=True) for one in (worker_engine, engine)]
    _drain_together(workers)
    assert sorted(runs) == list(range(1500))
    assert db.statuses() == {Status.COMPLETED: 1500}
    assert all(worker.counts.lost == 0 for worker in workers)


@strategies
def test_a_key_held_until_the_start_is_free_after_the_first_attempt(
    engine: Engine, db: Database, queue: TaskQueue, strategy: type[Reservation]
) -> None:
    @queue.task(retry=fixed(3600))
    def work() -> None:
        raise ValueError("later")

    until_start = db.put(work.using(unique_key="a", unique_until="start"))
    until_end = db.put(work.using(unique_key="b", unique_until="end"))
    drain(Worker(queue, engine, reservation=strategy(), drain=True))
    rows = {row.id: (row.status, row.unique_hash is None) for row in db.rows([until_start, until_end])}
    assert rows == {until_start: (Status.SCHEDULED, True), until_end: (Status.SCHEDULED, False)}


@strategies
def test_the_handlers_work_and_its_end_are_one_commit(
    worker_engine: Any, db: Database, queue: TaskQueue, strategy: type[Reservation]
) -> None:
    from sa_taskqueue.context import TaskContext
    from tests.models import Effect

    @queue.task
    def work(context: TaskContext, stale: bool) -> None:
        _add(context, stale)

    @queue.task
    async def work_async(context: TaskContext, stale: bool) -> None:
        _add(context, stale)
        await context.session.flush()

    def _add(context: TaskContext, stale: bool) -> None:
        context.session.add(Effect(task_id=str(context.task.id), note="stale" if stale else "right"))
        if stale:
            db.raise_epoch(context.task.id)

    chosen: Any = work if isinstance(worker_engine, Engine) else work_async
    right, stale = db.put(chosen, stale=False), db.put(chosen, stale=True)
    worker = drain(Worker(queue, worker_engine, reservation=strategy(), max_tasks=2))
    assert db.effects() == ["right"]
    assert [row.status for row in db.rows([right, stale])] == [Status.COMPLETED, Status.NEW]
    assert worker.counts.lost == 1


@strategies
def test_a_worker_beside_leases_warns(
    engine: Engine,
    tasks: Table,
    queue: TaskQueue,
    strategy: type[Reservation],
    ids: list[UUID],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with engine.begin() as connection:
        running = {"status": Status.RUNNING, "reserved_until": func.now()}
        connection.execute(update(tasks).where(tasks.c.id == ids[0]).values(running))
    drain(Worker(queue, engine, reservation=strategy(), drain=True))
    assert "may run twice" in caplog.text


@pytest.mark.servers("sqlite")
@strategies
def test_a_database_that_cannot_carry_it_says_so_before_a_table_is_missed(
    engine: Engine, strategy: type[Reservation]
) -> None:
    from sqlalchemy.orm import DeclarativeBase

    class Base(DeclarativeBase):
        pass

    class Nowhere(QueueMixin, Base):
        __tablename__ = "nowhere"

    worker = Worker(TaskQueue(Nowhere), engine, reservation=strategy())
    with pytest.raises(UnsupportedReservation, match=r"sqlite.* lease"):
        drain(worker)


def _drain_together(workers: list[Worker]) -> None:
    import threading

    threads = [threading.Thread(target=drain, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
