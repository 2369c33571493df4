"""RowLock on the databases that carry it: one transaction holds the task, does the work and ends it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from sqlalchemy import Engine, Table, event, select, text, update

from sa_taskqueue import RowLock, Snooze, TaskContext, TaskQueue, Worker
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.reservation import InWork, Lease
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Status
from sa_taskqueue.store import TaskStore
from tests.models import CrashNote, Effect, Task
from tests.support import eventually
from tests.worker.support import Database, drain, running

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")


@pytest.fixture
def queue() -> TaskQueue:
    return TaskQueue(Task, crash_notes=CrashNote)


def bound(engine: Engine, table: Table) -> InWork:
    with engine.connect() as connection:
        adapter = adapter_for(connection.dialect)
    reservation: InWork = RowLock()
    reservation.bind(TaskStore(table, adapter), adapter, lease=60.0, by="test")
    return reservation


def effect(context: TaskContext) -> None:
    context.session.add(Effect(task_id=str(context.task.id)))


def effects(db: Database) -> list[str]:
    with db.engine.connect() as connection:
        return sorted(connection.scalars(select(Effect.task_id)))


def test_a_locked_task_is_skipped_by_others_and_free_after_a_rollback(
    engine: Engine, tasks: Table, db: Database, queue: TaskQueue
) -> None:
    @queue.task
    def work(n: int) -> None: ...

    ids = db.put_many(work, 3)
    reservation = bound(engine, tasks)
    with engine.connect() as first, engine.connect() as second:
        [mine] = reservation.claim(first, "default", 1)
        others = reservation.claim(second, "default", 5)
        assert {mine.id, *(one.id for one in others)} == set(ids)
        assert len(others) == 2
        assert (mine.attempt, mine.epoch) == (1, 1)
        first.rollback()
        assert [one.id for one in reservation.claim(first, "default", 5)] == [mine.id]
    assert {(row.status, row.attempt, row.epoch) for row in db.rows(ids)} == {(Status.NEW, 0, 0)}


def test_a_task_that_was_locked_for_a_moment_is_free_when_that_is_over(
    engine: Engine, tasks: Table, db: Database, queue: TaskQueue
) -> None:
    """InnoDB keeps the entry of an index locked whose row a locking read has left out: the task was hidden until the
    handler of the one behind it ended.
    """

    @queue.task
    def work(n: int) -> None: ...

    head, behind = db.put_many(work, 2)
    reservation = bound(engine, tasks)
    at_read_committed = engine.execution_options(isolation_level="READ COMMITTED")
    with at_read_committed.connect() as first, at_read_committed.connect() as second:
        with at_read_committed.connect() as operator:
            operator.execute(select(Task.id).where(Task.id == head).with_for_update())
            assert [one.id for one in reservation.claim(first, "default", 1)] == [behind]
        assert [one.id for one in reservation.claim(second, "default", 1)] == [head]


def test_sync_and_async_handlers_run_once_each(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    ran: list[int] = []

    @queue.task
    def work(n: int) -> None:
        ran.append(n)

    @queue.task
    async def async_work(n: int) -> None:
        ran.append(100 + n)

    ids = db.put_many(work, 20) + db.put_many(async_work, 20)
    worker = drain(Worker(queue, worker_engine, reservation=RowLock(), drain=True))
    assert sorted(ran) == [*range(20), *range(100, 120)]
    assert {(row.status, row.attempt, row.epoch) for row in db.rows(ids)} == {(Status.COMPLETED, 1, 1)}
    assert (worker.counts.claimed, worker.counts.completed) == (40, 40)


def test_effect_and_completion_are_one_commit_and_never_seen_as_running(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    seen: list[Status] = []

    @queue.task
    def work(context: TaskContext) -> None:
        effect(context)
        context.session.commit()
        seen.extend(db.statuses())

    task_id = db.put(work)
    drain(Worker(queue, engine, reservation=RowLock(), drain=True))
    assert seen == [Status.NEW]
    assert (db.row(task_id).status, effects(db)) == (Status.COMPLETED, [str(task_id)])


async def test_an_async_session_commits_with_the_completion(async_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=fixed(3600))
    async def work(context: TaskContext, n: int) -> None:
        context.async_session.add(Effect(task_id=str(context.task.id)))
        await context.async_session.commit()
        if n:
            raise ValueError("after the commit of its own")

    done, failed = db.put_many(work, 2)
    await Worker(queue, async_engine, reservation=RowLock(), drain=True).serve()
    assert [row.status for row in db.rows([done, failed])] == [Status.COMPLETED, Status.SCHEDULED]
    assert effects(db) == [str(done)]


def test_a_failure_is_undone_to_the_savepoint_and_recorded_by_the_same_commit(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    @queue.task(retry=fixed(3600))
    def work(context: TaskContext) -> None:
        effect(context)
        context.session.commit()
        raise ValueError("after the commit of its own")

    task_id = db.put(work)
    ends: list[str] = []

    def slot(kind: str) -> Any:
        def note(connection: Any) -> None:
            if threading.current_thread().name.startswith("sa_taskqueue-default-"):
                holder = db.row(task_id)
                ends.append(f"{kind} {holder.status} {holder.attempt}")

        return note

    committed, rolled_back = slot("commit"), slot("rollback")
    event.listen(engine, "commit", committed)
    event.listen(engine, "rollback", rolled_back)
    drain(Worker(queue, engine, queues={"default": 1}, reservation=RowLock(), drain=True))
    row = db.row(task_id)
    # Before the first COMMIT the row is as it was; the claim that then finds nothing is the other one.
    assert [end for end in ends if "NEW" in end] == ["commit NEW 0"]
    assert not [end for end in ends if end.startswith("rollback")]
    assert (row.status, row.attempt, json.loads(row.error)["code"]) == (Status.SCHEDULED, 1, "error")
    assert row.scheduled_at > row.created_at
    assert effects(db) == []


def test_a_statement_that_fails_leaves_the_task_locked_and_recorded(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    @queue.task(retry=never)
    def work(context: TaskContext) -> None:
        effect(context)
        context.session.execute(text("SELECT * FROM no_such_table"))

    task_id = db.put(work)
    drain(Worker(queue, engine, reservation=RowLock(), drain=True))
    assert (db.row(task_id).status, effects(db)) == (Status.FAILED, [])


def test_a_connection_that_breaks_in_the_work_leaves_the_task_to_do(
    engine: Engine, db: Database, queue: TaskQueue, server: str
) -> None:
    postgresql = server.startswith("postgresql")
    own = "SELECT pg_backend_pid()" if postgresql else "SELECT CONNECTION_ID()"
    kill = "SELECT pg_terminate_backend({})" if postgresql else "KILL {}"
    runs: list[int] = []

    @queue.task
    def work(context: TaskContext) -> None:
        runs.append(context.attempt)
        effect(context)
        context.session.flush()
        if len(runs) == 1:
            connection_id = context.session.scalar(text(own))
            with db.engine.begin() as other:
                other.execute(text(kill.format(connection_id)))
            context.session.execute(text("SELECT 1"))

    task_id = db.put(work)
    drain(Worker(queue, engine, reservation=RowLock(), drain=True))
    row = db.row(task_id)
    assert (runs, row.status, row.attempt) == ([1, 1], Status.COMPLETED, 1)
    assert effects(db) == [str(task_id)]


def test_a_snooze_keeps_the_work_and_not_the_attempt(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(context: TaskContext) -> None:
        effect(context)
        raise Snooze(3600)

    task_id = db.put(work)
    drain(Worker(queue, engine, reservation=RowLock(), drain=True))
    row = db.row(task_id)
    assert (row.status, row.attempt, effects(db)) == (Status.SCHEDULED, 0, [str(task_id)])


def test_unknown_names_and_bodies_that_do_not_fit_harm_only_themselves(
    worker_engine: Any, db: Database, queue: TaskQueue
) -> None:
    elsewhere = TaskQueue(Task)

    @elsewhere.task
    def nobody() -> None: ...

    @queue.task
    def work(n: int) -> None: ...

    unknown, [spoiled, good] = db.put(nobody), db.put_many(work, 2)
    with db.engine.begin() as connection:
        connection.execute(update(Task).where(Task.id == spoiled).values(body='{"n": "text"}'))
    worker = drain(Worker(queue, worker_engine, queues={"default": 1}, reservation=RowLock(), drain=True))
    rows = db.rows([unknown, spoiled, good])
    assert [(row.status, row.attempt) for row in rows] == [
        (Status.SCHEDULED, 0),
        (Status.FAILED, 1),
        (Status.COMPLETED, 1),
    ]
    assert worker.counts.unknown == 1


def test_a_handler_that_hangs_is_given_up_and_its_timeout_recorded(
    worker_engine: Any, db: Database, queue: TaskQueue
) -> None:
    let_go = threading.Event()

    @queue.task(timeout=0.2, retry=never)
    def work(context: TaskContext) -> None:
        let_go.wait(60)

    task_id = db.put(work)
    worker = Worker(queue, worker_engine, reservation=RowLock())
    try:
        with running(worker):
            eventually(lambda: db.row(task_id).status == Status.FAILED)
            worker.stop()
    finally:
        let_go.set()
    assert json.loads(db.row(task_id).error)["code"] == "timeout"
    assert worker.counts.abandoned == 1


def test_an_async_handler_that_hangs_is_cancelled(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    import asyncio

    @queue.task(timeout=0.2, retry=never)
    async def work() -> None:
        await asyncio.Event().wait()

    task_id = db.put(work)
    drain(Worker(queue, worker_engine, reservation=RowLock(), drain=True))
    row = db.row(task_id)
    assert (row.status, json.loads(row.error)["code"]) == (Status.FAILED, "timeout")


def test_a_stop_waits_for_what_runs_and_frees_what_does_not_end(
    worker_engine: Any, db: Database, queue: TaskQueue
) -> None:
    import asyncio

    started: list[str] = []
    let_go = threading.Event()

    @queue.task
    def stuck() -> None:
        started.append("stuck")
        let_go.wait(60)

    @queue.task
    async def sleeping() -> None:
        started.append("sleeping")
        await asyncio.Event().wait()

    ids = [db.put(stuck), db.put(sleeping)]
    worker = Worker(queue, worker_engine, reservation=RowLock(), grace=0.1)
    try:
        with running(worker):
            eventually(lambda: len(started) == 2)
            worker.stop()
    finally:
        let_go.set()
    assert [(row.status, row.attempt) for row in db.rows(ids)] == [(Status.NEW, 0)] * 2
    assert worker.counts.released == 2
    eventually(lambda: _claimable(db) == 2)


def _claimable(db: Database) -> int:
    with db.engine.connect() as connection:
        return len(connection.execute(select(Task.id).with_for_update(skip_locked=True)).all())


def test_max_tasks_is_kept_by_all_slots_together(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(n: int) -> None: ...

    db.put_many(work, 30)
    worker = drain(Worker(queue, worker_engine, reservation=RowLock(), max_tasks=7))
    assert (worker.counts.completed, db.statuses()[Status.NEW]) == (7, 23)


def test_of_many_idle_slots_one_looks_and_a_wake_up_is_heard(engine: Engine, db: Database, queue: TaskQueue) -> None:
    looks: list[str] = []
    ran = threading.Event()

    @queue.task
    def work() -> None:
        ran.set()

    def seen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if threading.current_thread().name.startswith("sa_taskqueue-default-"):
            looks.append(statement)

    event.listen(engine, "before_cursor_execute", seen)
    worker = Worker(queue, engine, queues={"default": 10}, reservation=RowLock(), poll_min=3600.0, poll_max=3600.0)
    with running(worker):
        eventually(lambda: looks)
        with queue_session(engine) as session, session.begin():
            session.enqueue(work)
        assert ran.wait(45)
        worker.stop()
    claims = [statement for statement in looks if "ORDER BY task.priority" in statement]
    # The first look, the one after the wake-up, one more of a free slot, and the last of the slot that worked.
    assert len(claims) <= 4


def queue_session(engine: Engine) -> Any:
    from sa_taskqueue import TaskSession

    return TaskSession(engine)


def test_workers_with_a_lease_and_with_row_locks_share_a_queue(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(context: TaskContext, n: int) -> None:
        effect(context)

    ids = db.put_many(work, 300)
    leasing = Worker(queue, engine, queues={"default": 3}, reservation=Lease(), drain=True, batch=5)
    locking = Worker(queue, engine, queues={"default": 3}, reservation=RowLock(), drain=True)
    with running(leasing), running(locking):
        pass
    assert {(row.status, row.attempt) for row in db.rows(ids)} == {(Status.COMPLETED, 1)}
    assert effects(db) == sorted(str(task_id) for task_id in ids)
