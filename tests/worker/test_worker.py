"""The main job on every server: claim, run, finish, over an Engine and an AsyncEngine."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import json
import threading
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine, update
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from sa_taskqueue import telemetry
from sa_taskqueue.context import TaskContext
from sa_taskqueue.exceptions import InvalidHandler, InvalidName, InvalidSetting
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Complete, Snooze, Status
from sa_taskqueue.worker import Worker, WorkerSettings
from sa_taskqueue.worker.settings import WorkerOptions
from tests.models import Effect
from tests.support import eventually
from tests.worker.support import Database, drain, running


def test_sync_and_async_handlers_run_in_one_worker(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    ran: list[tuple[str, int]] = []

    @queue.task
    def in_thread(n: int) -> None:
        ran.append(("thread", n))

    @queue.task
    async def on_loop(n: int) -> None:
        await asyncio.sleep(0)
        ran.append(("loop", n))

    db.put_many(in_thread, 150)
    db.put_many(on_loop, 150)
    worker = drain(Worker(queue, worker_engine, drain=True))
    assert sorted(ran) == sorted([("thread", n) for n in range(150)] + [("loop", n) for n in range(150)])
    assert db.statuses() == {Status.COMPLETED: 300}
    assert worker.counts.completed == 300
    assert worker.counts.lost == 0


def test_a_row_keeps_result_attempt_and_end(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task(store_result=True)
    def double(n: int) -> int:
        return 2 * n

    task_id = db.put(double, 21)
    drain(Worker(queue, worker_engine, drain=True))
    row = db.row(task_id)
    assert (row.status, row.attempt, row.reserved_until, row.reserved_by) == (Status.COMPLETED, 1, None, None)
    assert json.loads(row.result) == 42
    assert row.finished_at is not None


def test_an_error_is_retried_and_its_history_kept(worker_engine: Any, db: Database, queue: TaskQueue) -> None:
    @queue.task(retry=fixed(0))
    def third_time(context: TaskContext) -> None:
        if context.attempt < 3:
            raise ValueError(f"attempt {context.attempt}")

    task_id = db.put(third_time)
    worker = drain(Worker(queue, worker_engine, drain=True))
    row = db.row(task_id)
    assert (row.status, row.attempt, worker.counts.retried) == (Status.COMPLETED, 3, 2)
    assert [entry["message"] for entry in json.loads(row.errors)] == ["attempt 1", "attempt 2"]


def test_what_cannot_be_decoded_fails_alone(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def wants_a_number(n: int) -> None: ...

    ids = db.put_many(wants_a_number, 5)
    with db.engine.begin() as connection:
        connection.execute(update(db.table).where(db.table.c.id == ids[2]).values(body='{"n": "two"}'))
    drain(Worker(queue, engine, drain=True))
    assert db.statuses() == {Status.COMPLETED: 4, Status.FAILED: 1}
    assert json.loads(db.row(ids[2]).error)["code"] == "undecodable"


def test_an_unknown_name_goes_back_unburned(engine: Engine, db: Database, queue: TaskQueue) -> None:
    task_id = db.put(queue.named("elsewhere"))
    worker = drain(Worker(queue, engine, drain=True, unknown_delay=3600))
    row = db.row(task_id)
    assert (row.status, row.attempt, worker.counts.unknown) == (Status.SCHEDULED, 0, 1)


def test_an_unknown_name_fails_after_the_set_time(engine: Engine, db: Database, queue: TaskQueue) -> None:
    task_id = db.put(queue.named("elsewhere"))
    drain(Worker(queue, engine, drain=True, unknown_after=0))
    row = db.row(task_id)
    assert (row.status, json.loads(row.error)["code"]) == (Status.FAILED, "unknown_task")


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.servers("sqlite")
def test_what_is_no_failure_of_the_handler_is_given_back(
    engine: Engine, db: Database, queue: TaskQueue, error: type[BaseException], kind: str
) -> None:
    def leave() -> None:
        raise error

    async def leave_async() -> None:
        raise error

    function: Any = leave if kind == "sync" else leave_async
    task_id = db.put(queue.task(name="leave")(function))
    worker = drain(Worker(queue, engine, drain=True))
    row = db.row(task_id)
    assert (row.status, row.attempt, worker.counts.released) == (Status.SCHEDULED, 0, 1)


def test_a_snooze_counts_no_attempt(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def later() -> object:
        return Snooze(3600)

    task_id = db.put(later)
    worker = drain(Worker(queue, engine, drain=True))
    assert (db.row(task_id).status, db.row(task_id).attempt) == (Status.SCHEDULED, 0)
    assert worker.counts.snoozed == 1


@pytest.mark.servers("sqlite", "postgresql")
def test_max_tasks_ends_the_worker(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(n: int) -> None: ...

    db.put_many(work, 50)
    worker = drain(Worker(queue, engine, queues={"default": 4, "other": 4}, max_tasks=7))
    assert worker.counts.completed == 7
    assert db.statuses() == {Status.COMPLETED: 7, Status.NEW: 43}


@pytest.mark.servers("sqlite")
def test_each_queue_has_its_own_concurrency(engine: Engine, db: Database, queue: TaskQueue) -> None:
    running_now: dict[str, int] = {"wide": 0, "narrow": 0}
    most: dict[str, int] = {"wide": 0, "narrow": 0}
    lock = threading.Lock()
    all_wide = threading.Barrier(3)

    @queue.task(queue="narrow")
    def narrow(context: TaskContext, n: int) -> None:
        _count(context)

    @queue.task(queue="wide")
    def wide(context: TaskContext, n: int) -> None:
        _count(context, all_wide)

    def _count(context: TaskContext, barrier: threading.Barrier | None = None) -> None:
        name = context.task.queue
        with lock:
            running_now[name] += 1
            most[name] = max(most[name], running_now[name])
        if barrier is not None:
            barrier.wait(30)
        with lock:
            running_now[name] -= 1

    db.put_many(narrow, 20)
    db.put_many(wide, 30)
    drain(Worker(queue, engine, queues={"narrow": 1, "wide": 3}, drain=True))
    assert most == {"narrow": 1, "wide": 3}


@pytest.mark.servers("sqlite")
def test_a_task_behind_a_slow_one_goes_to_the_next_free_slot(engine: Engine, db: Database, queue: TaskQueue) -> None:
    others_done = threading.Event()
    count = 0

    @queue.task
    def work(n: int) -> None:
        nonlocal count
        if n == 0:
            assert others_done.wait(30)
            return
        count += 1
        if count == 99:
            others_done.set()

    db.put_many(work, 100)
    drain(Worker(queue, engine, queues={"default": 2}, drain=True))
    assert db.statuses() == {Status.COMPLETED: 100}
    assert others_done.is_set()


@pytest.mark.servers("sqlite")
def test_an_ended_task_is_stored_while_a_slow_one_still_runs(engine: Engine, db: Database, queue: TaskQueue) -> None:
    go_on = threading.Event()

    @queue.task
    def work(n: int) -> None:
        if n == 0:
            assert go_on.wait(60)

    db.put_many(work, 40)
    with running(Worker(queue, engine, queues={"default": 2}, drain=True)):
        eventually(lambda: db.statuses().get(Status.COMPLETED) == 39)
        go_on.set()
    assert db.statuses() == {Status.COMPLETED: 40}


@pytest.mark.servers("sqlite")
def test_handlers_do_not_see_each_others_context_variables(engine: Engine, db: Database, queue: TaskQueue) -> None:
    variable = contextvars.ContextVar("variable", default=0)
    seen: list[int] = []

    @queue.task
    def work(n: int) -> None:
        seen.append(variable.get())
        variable.set(n + 1)

    db.put_many(work, 20)
    drain(Worker(queue, engine, queues={"default": 1}, drain=True))
    assert seen == [0] * 20


@pytest.mark.servers("sqlite")
def test_a_sync_function_that_returns_an_awaitable_fails(engine: Engine, db: Database, queue: TaskQueue) -> None:
    async def inner() -> None: ...

    @queue.task(retry=never)
    def forgot_async() -> Any:
        return inner()

    task_id = db.put(forgot_async)
    drain(Worker(queue, engine, drain=True))
    assert "awaitable" in json.loads(db.row(task_id).error)["message"]


@pytest.mark.servers("sqlite")
def test_complete_may_be_raised(engine: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task(store_result=True)
    def work() -> None:
        raise Complete({"early": True})

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert json.loads(db.row(task_id).result) == {"early": True}


@pytest.mark.servers("sqlite")
def test_a_scheduled_task_runs_when_it_is_due(engine: Engine, db: Database, queue: TaskQueue) -> None:
    import datetime as dt

    ran = threading.Event()

    @queue.task
    def work() -> None:
        ran.set()

    db.put(work.using(run_after=dt.timedelta(seconds=0.3)))
    worker = Worker(queue, engine)
    with running(worker):
        assert ran.wait(30)
        worker.stop()


@pytest.mark.servers("sqlite", "postgresql")
def test_an_enqueue_in_the_same_process_ends_the_sleep(engine: Engine, db: Database, queue: TaskQueue) -> None:
    ran = threading.Event()

    @queue.task
    def work() -> None:
        ran.set()

    worker = Worker(queue, engine, poll_min=3000, poll_max=3000)
    with running(worker):
        db.put(work)
        eventually(lambda: db.statuses().get(Status.COMPLETED) == 1)
        ran.clear()
        db.put(work)
        assert ran.wait(30)
        worker.stop()


@pytest.mark.servers("sqlite")
def test_events_tell_what_happened(engine: Engine, db: Database, queue: TaskQueue) -> None:
    events: list[telemetry.Event] = []
    unsubscribe = telemetry.subscribe(events.append)

    @queue.task
    def work() -> None: ...

    task_id = db.put(work)
    try:
        drain(Worker(queue, engine, drain=True))
    finally:
        unsubscribe()
    [ended] = [event for event in events if isinstance(event, telemetry.TaskEnded)]
    assert (ended.id, ended.name, ended.status, ended.attempt) == (task_id, "work", "COMPLETED", 1)
    assert sum(event.count for event in events if isinstance(event, telemetry.TasksClaimed)) == 1


@pytest.mark.servers("sqlite")
def test_a_worker_refuses_settings_out_of_range(engine: Engine, queue: TaskQueue) -> None:
    for wrong in ({"queues": {"default": 0}}, {"lease": 0.1}, {"batch": 0}, {"max_tasks": 0}, {"poll_min": 5.0}):
        with pytest.raises(InvalidSetting):
            Worker(queue, engine, **wrong)


@pytest.mark.servers("sqlite")
@pytest.mark.parametrize("name", ["mail%", "\U0001f600", "", "two words", "q" * 65, "nul\0"])
def test_a_worker_refuses_a_queue_that_nothing_can_be_enqueued_in(engine: Engine, queue: TaskQueue, name: str) -> None:
    with pytest.raises(InvalidName):
        Worker(queue, engine, queues={name: 1})


@pytest.mark.servers("sqlite")
def test_the_typed_keywords_are_the_settings() -> None:
    keywords = {field.name for field in dataclasses.fields(WorkerSettings)} - {"queues", "name"}
    assert WorkerOptions.__annotations__.keys() == keywords


def test_a_worker_runs_once(engine: Engine, db: Database, queue: TaskQueue) -> None:
    worker = drain(Worker(queue, engine, drain=True))
    with pytest.raises(RuntimeError, match="once"):
        drain(worker)


@pytest.mark.servers("sqlite")
def test_annotations_nobody_can_resolve_are_refused_at_the_start(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    try:

        @queue.task
        def work(n: NoSuchName) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    except InvalidHandler:
        return
    with pytest.raises(InvalidHandler):
        drain(Worker(queue, engine, drain=True))


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_handler_that_empties_the_pool_does_not_end_the_worker(url: URL, db: Database, queue: TaskQueue) -> None:
    engine = create_engine(url, pool_size=5, max_overflow=0, pool_timeout=0.1)

    @queue.task(queue="other")
    def other() -> None: ...

    @queue.task
    def greedy() -> None:
        with contextlib.ExitStack() as taken:
            with contextlib.suppress(PoolTimeout):
                while True:
                    taken.enter_context(engine.connect())
            other_id = db.put(other)
            eventually(lambda: db.row(other_id).status == Status.COMPLETED)

    db.put(greedy)
    drain(Worker(queue, engine, queues={"default": 1, "other": 1}, drain=True))
    assert set(db.statuses()) == {Status.COMPLETED}
    engine.dispose()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_handlers_sessions_wait_for_each_other_where_the_pool_is_small(
    async_engine: Any, db: Database, queue: TaskQueue, is_async: bool
) -> None:
    """In the pool they would wait in vain for a connection that goes back to the worker, and lose an attempt."""
    url = async_engine.url if is_async else db.engine.url
    make = create_async_engine if is_async else create_engine
    engine = make(url, pool_size=4, max_overflow=0, pool_timeout=0.1)

    @queue.task
    def in_thread(context: TaskContext, n: int) -> None:
        context.session.add(Effect(task_id=str(context.task.id), note=str(n)))
        context.session.flush()
        context.lost.wait(0.3)

    @queue.task
    async def on_loop(context: TaskContext, n: int) -> None:
        context.async_session.add(Effect(task_id=str(context.task.id), note=str(n)))
        await context.async_session.flush()
        await asyncio.to_thread(context.lost.wait, 0.3)

    ids = db.put_many(on_loop if is_async else in_thread, 4)
    drain(Worker(queue, engine, queues={"default": 4}, drain=True))
    assert db.effects() == ["0", "1", "2", "3"]
    assert [row.attempt for row in db.rows(ids)] == [1, 1, 1, 1]


@pytest.mark.parametrize("engine", ["sqlite:///secret.db", Session, None])
def test_what_is_no_engine_is_refused_with_the_right_form_named(queue: TaskQueue, engine: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"an Engine or AsyncEngine, such as sqlite_engine\(url\)") as caught:
        Worker(queue, engine)
    assert "secret" not in str(caught.value)
