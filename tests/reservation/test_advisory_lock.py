"""AdvisoryLock: which locks are taken, freed and lost."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, text

from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import AdvisoryLock
from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed
from sa_taskqueue.store.session_locks import SessionLocks
from sa_taskqueue.worker import Worker
from tests.reservation.conftest import MakeHolder
from tests.reservation.holder import Holder
from tests.support import eventually
from tests.worker.support import Database, running

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")


@pytest.fixture
def ids(db: Database, queue: TaskQueue) -> list[UUID]:
    @queue.task
    def work(n: int) -> None: ...

    return db.put_many(work, 300)


def locked(holder: Holder, ids: list[UUID]) -> set[UUID]:
    """Which of the tasks the holder's connection has locked, by the server's word."""
    shape = holder.store.adapter.session_locks()
    assert shape is not None
    locks = SessionLocks(holder.store.table, shape)
    session = locks.session(holder.connection)
    keys = {locks.key(task, session): task for task in ids}
    return {keys[key] for key in locks.taken(holder.connection, list(keys), session)}


def test_no_row_beyond_the_limit_is_locked(make_holder: MakeHolder, ids: list[UUID]) -> None:
    holder = make_holder(AdvisoryLock())
    claimed = holder.claim(5)
    assert locked(holder, ids) == {task.id for task in claimed}
    assert len(claimed) == 5


@pytest.mark.servers("postgresql")
def test_the_lock_function_is_in_a_plan_of_its_own(make_holder: MakeHolder, ids: list[UUID]) -> None:
    """No planner can run it on a row of the table: the statement names no table."""
    holder = make_holder(AdvisoryLock())
    shape = holder.store.adapter.session_locks()
    assert shape is not None
    compiled = shape.take.compile(holder.connection)
    rows = holder.connection.exec_driver_sql(f"EXPLAIN (VERBOSE) {compiled}", {"packed": [1, 2]}).scalars().all()
    assert not any("Scan" in row and "Function Scan" not in row for row in rows)


def test_what_is_let_go_is_unlocked_at_the_next_claim(make_holder: MakeHolder, ids: list[UUID]) -> None:
    holder = make_holder(AdvisoryLock())
    claimed = holder.claim(5)
    assert holder.complete(claimed) == {task.id for task in claimed}
    next_claimed = holder.claim(3)
    assert locked(holder, ids) == {task.id for task in next_claimed}
    holder.release(next_claimed)
    holder.reservation.end(holder.connection)
    assert locked(holder, ids) == set()


def test_the_number_of_locks_is_bounded(make_holder: MakeHolder, ids: list[UUID]) -> None:
    holder = make_holder(AdvisoryLock(max_locks=10))
    assert [len(holder.claim(6)) for _ in range(3)] == [6, 4, 0]


@pytest.mark.parametrize("wrong", [0, 10_001, "5"])
def test_a_wrong_bound_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidSetting, match="max_locks"):
        AdvisoryLock(max_locks=wrong)


def test_what_others_hold_at_the_head_of_the_queue_does_not_hide_the_rest(
    make_holder: MakeHolder, ids: list[UUID]
) -> None:
    held = make_holder(AdvisoryLock()).claim(290)
    late = make_holder(AdvisoryLock())
    claimed: list[Claimed] = []
    for _ in range(30):
        claimed += late.claim(4)
    assert {task.id for task in claimed} == {*ids} - {task.id for task in held}


def test_a_lost_connection_frees_all_and_refuses_the_finish(make_holder: MakeHolder, ids: list[UUID]) -> None:
    holder, other = make_holder(AdvisoryLock()), make_holder(AdvisoryLock())
    claimed = holder.claim(300)
    assert holder.renew(claimed).extended == {*ids}
    holder.reconnect()
    assert holder.renew(claimed).extended == set()
    # Not taken again by the worker whose handlers still run, but by another one.
    assert holder.claim(300) == []
    assert len(_claim_all(other, 300)) == 300
    assert holder.complete(claimed) == set()
    assert holder.claim(300) == []


def test_of_two_holders_the_first_commit_wins(make_holder: MakeHolder, ids: list[UUID]) -> None:
    holder, other = make_holder(AdvisoryLock()), make_holder(AdvisoryLock())
    claimed = holder.claim(300)
    holder.reconnect()  # which the strategy has not noticed yet
    again = _claim_all(other, 300)
    assert other.complete(again[:200]) == {task.id for task in again[:200]}
    assert holder.complete(claimed) == {task.id for task in again[200:]}
    assert other.complete(again[200:]) == set()


def test_a_worker_that_loses_the_connection_of_its_locks_stops_its_handlers(
    worker_engine: Any, engine: Engine, db: Database, queue: TaskQueue
) -> None:
    started, told = threading.Event(), threading.Event()

    @queue.task
    def work(context: TaskContext) -> None:
        if started.is_set():
            return  # the second run
        started.set()
        if context.lost.wait(60):
            told.set()

    task_id = db.put(work)
    worker = Worker(queue, worker_engine, reservation=AdvisoryLock(), lease=4.0, drain=True)
    with running(worker):
        assert started.wait(60)
        eventually(lambda: _end_lock_holders(engine))
        assert told.wait(60)
        eventually(lambda: db.row(task_id).status == Status.COMPLETED)
    assert worker.counts.lost >= 1
    assert db.row(task_id).epoch == 1


def _claim_all(holder: Holder, number: int) -> list[Claimed]:
    claimed: list[Claimed] = []

    def all_claimed() -> bool:
        claimed.extend(holder.claim(number - len(claimed)))
        return len(claimed) >= number

    eventually(all_claimed, message="the server has not freed the locks of the lost connection")
    return claimed


def _end_lock_holders(engine: Engine) -> bool:
    """Have the server end every connection that holds such a lock; whether there was one."""
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        if engine.dialect.name == "postgresql":
            return _end_on_postgresql(connection)
        return _end_on_mysql(connection)


def _end_on_postgresql(connection: Connection) -> bool:
    ended = connection.execute(
        text(
            "SELECT pg_terminate_backend(pid) FROM (SELECT DISTINCT pid FROM pg_locks JOIN pg_database d "
            "ON d.oid = database WHERE locktype = 'advisory' AND objsubid = 1 AND datname = current_database()) held"
        )
    )
    return len(ended.all()) > 0


def _end_on_mysql(connection: Connection) -> bool:
    """The lock is found by the task that it is for, and the connection by the lock."""
    name = "sa_taskqueue:"
    database, task = connection.execute(text("SELECT DATABASE(), LOWER(HEX(id)) FROM task LIMIT 1")).one()
    from sa_taskqueue.adapters.base import lock_key

    key = lock_key(f"{database}.task:{UUID(task)}") & 0xFFFFFFFFFFFFFFFF
    holder = connection.scalar(text("SELECT IS_USED_LOCK(:name)"), {"name": f"{name}{key:016x}"})
    if holder is None:
        return False
    connection.execute(text(f"KILL {int(holder)}"))
    return True
