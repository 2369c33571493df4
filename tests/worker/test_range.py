"""Range handlers on every server, with every strategy that it carries, over an Engine and an AsyncEngine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from sa_taskqueue import (
    AdvisoryLock,
    BatchContext,
    Cancel,
    Fail,
    Lease,
    ReservationTable,
    Retry,
    RowLock,
    Snooze,
    TaskContext,
    TaskQueue,
    Worker,
    fixed,
    never,
)
from sa_taskqueue.states import Status
from tests.models import Effect, Task
from tests.reservation.conftest import reserved
from tests.reservation.models import Reserved
from tests.support import eventually
from tests.worker.support import Database, drain, running

__all__ = ["reserved"]

STRATEGIES: dict[str, Callable[[], Any]] = {
    "lease": Lease,
    "row-lock": lambda: RowLock(batch=50),
    "advisory-lock": AdvisoryLock,
    "reservation-table": ReservationTable,
}


@dataclass(frozen=True)
class Ref:
    n: int


@pytest.fixture
def queue(request: pytest.FixtureRequest, server: str) -> TaskQueue:
    if server != "sqlite":
        request.getfixturevalue("reserved")
    return TaskQueue(Task, reservations=Reserved)


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest, server: str) -> Any:
    if server == "sqlite" and request.param != "lease":
        return Lease()  # the only one that SQLite carries
    return STRATEGIES[request.param]()


class Range:
    """A range handler of items `Ref`, sync or async as the engine is, which keeps what it was called with."""

    def __init__(self, queue: TaskQueue, engine: Any, work: Any, **settings: Any) -> None:
        self.calls: list[list[int]] = []
        self.contexts: list[BatchContext] = []
        settings = {"batch": 10, "retry": fixed(0), **settings}

        def called(context: BatchContext, items: list[Ref]) -> None:
            self.calls.append(sorted(item.n for item in items))
            self.contexts.append(context)

        if hasattr(engine, "sync_engine"):

            async def handler(context: BatchContext, items: list[Ref]) -> Any:
                called(context, items)
                return await work(context, items, _Async(context))
        else:

            def handler(context: BatchContext, items: list[Ref]) -> Any:
                called(context, items)
                coroutine = work(context, items, _Sync(context))
                try:
                    coroutine.send(None)
                except StopIteration as ended:
                    return ended.value
                raise AssertionError("the sync handler waited")

        self.task = queue.task(name="index", item=Ref, **settings)(handler)


class _Sync:
    """One way of writing the work of both kinds of handlers."""

    def __init__(self, context: BatchContext) -> None:
        self.context = context

    def add(self, note: object) -> None:
        self.context.session.add(Effect(task_id="", note=str(note)))

    async def flush(self) -> None:
        self.context.session.flush()

    def item(self, item: object) -> Any:
        return _AsyncFace(self.context.savepoint(item))


class _AsyncFace:
    def __init__(self, scope: Any) -> None:
        self.scope = scope

    async def __aenter__(self) -> None:
        self.scope.__enter__()

    async def __aexit__(self, *error: object) -> bool:
        return bool(self.scope.__exit__(*error))


class _Async(_Sync):
    def add(self, note: object) -> None:
        self.context.async_session.add(Effect(task_id="", note=str(note)))

    async def flush(self) -> None:
        await self.context.async_session.flush()

    def item(self, item: object) -> Any:
        return self.context.savepoint(item)


def worker(queue: TaskQueue, engine: Any, strategy: Any, **settings: Any) -> Worker:
    settings = {"drain": True, "queues": {"default": 1}, **settings}
    return Worker(queue, engine, reservation=strategy, **settings)


def numbers(db: Database) -> list[int]:
    return sorted(map(int, db.effects()))


async def insert_each(context: BatchContext, items: list[Ref], face: _Sync) -> None:
    for item in items:
        face.add(item.n)


def test_tasks_run_together_and_each_ends(db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any) -> None:
    index = Range(queue, worker_engine, insert_each)
    ids = db.put_many(index.task, 25)
    done = drain(worker(queue, worker_engine, strategy))
    assert sorted(map(len, index.calls)) == [5, 10, 10]
    assert numbers(db) == list(range(25))
    assert {(row.status, row.attempt) for row in db.rows(ids)} == {("COMPLETED", 1)}
    assert (done.counts.claimed, done.counts.completed, done.counts.ended) == (25, 25, 25)


def test_a_bad_item_neither_spoils_nor_repeats_the_others(
    db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any
) -> None:
    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> None:
        for item in items:
            async with face.item(item):
                face.add(item.n)
                await face.flush()
                if item.n == 3:
                    raise ValueError("bad")

    index = Range(queue, worker_engine, work, max_attempts=2)
    ids = db.put_many(index.task, 6)
    drain(worker(queue, worker_engine, strategy))
    rows = db.rows(ids)
    assert [row.status for row in rows] == ["COMPLETED"] * 3 + ["FAILED"] + ["COMPLETED"] * 2
    assert [row.attempt for row in rows] == [1, 1, 1, 2, 1, 1]
    assert json.loads(rows[3].error)["type"].endswith("ValueError")
    assert numbers(db) == [0, 1, 2, 4, 5]
    assert index.calls == [[0, 1, 2, 3, 4, 5], [3]]


def test_after_an_exception_of_the_handler_each_runs_alone(
    db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any
) -> None:
    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> None:
        await insert_each(context, items, face)
        await face.flush()
        if 2 in [item.n for item in items]:
            raise ValueError("poison")

    index = Range(queue, worker_engine, work, max_attempts=3)
    ids = db.put_many(index.task, 4)
    done = drain(worker(queue, worker_engine, strategy))
    assert [row.status for row in db.rows(ids)] == ["COMPLETED", "COMPLETED", "FAILED", "COMPLETED"]
    assert [row.attempt for row in db.rows(ids)] == [2, 2, 3, 2]
    assert numbers(db) == [0, 1, 3]
    assert index.calls[0] == [0, 1, 2, 3]
    assert all(len(call) == 1 for call in index.calls[1:])
    assert (done.counts.retried, done.counts.completed, done.counts.failed) == (5, 3, 1)


def test_a_policy_without_a_retry_fails_only_the_bad_one(
    db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any
) -> None:
    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> None:
        await insert_each(context, items, face)
        if 1 in [item.n for item in items]:
            raise ValueError("hopeless")

    index = Range(queue, worker_engine, work, retry=fixed(0) | never.on(ValueError))
    ids = db.put_many(index.task, 3)
    drain(worker(queue, worker_engine, strategy))
    assert [row.status for row in db.rows(ids)] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert numbers(db) == [0, 2]


def test_the_last_attempt_is_made_alone(db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any) -> None:
    index = Range(queue, worker_engine, insert_each, max_attempts=1)
    db.put_many(index.task, 3)
    drain(worker(queue, worker_engine, strategy))
    assert sorted(index.calls) == [[0], [1], [2]]


def test_outcomes_by_item_and_by_id(db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any) -> None:
    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> Any:
        of = {item.n: item for item in items}
        return {of[0]: Fail("no"), context.task(of[1]).id: Cancel("off"), of[2]: Retry(3600), of[3]: Snooze(3600)}

    index = Range(queue, worker_engine, work)
    ids = db.put_many(index.task, 5)
    drain(worker(queue, worker_engine, strategy))
    rows = db.rows(ids)
    assert [row.status for row in rows] == ["FAILED", "CANCELLED", "SCHEDULED", "SCHEDULED", "COMPLETED"]
    assert [row.attempt for row in rows] == [1, 1, 1, 0, 1]


def test_a_list_of_results_is_stored_with_their_tasks(
    db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any
) -> None:
    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> Any:
        await insert_each(context, items, face)
        return [item.n * 2 for item in items]

    index = Range(queue, worker_engine, work, store_result=True)
    ids = db.put_many(index.task, 4)
    drain(worker(queue, worker_engine, strategy))
    assert [json.loads(row.result) for row in db.rows(ids)] == [0, 2, 4, 6]


def test_an_undecodable_item_fails_alone(db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any) -> None:
    index = Range(queue, worker_engine, insert_each)
    ids = db.put_many(index.task, 3)
    _set_body(db, ids[1], '{"m": 1}')
    drain(worker(queue, worker_engine, strategy))
    assert [row.status for row in db.rows(ids)] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert json.loads(db.row(ids[1]).error)["code"] == "undecodable"
    assert index.calls == [[0, 2]]


def test_an_answer_that_fits_no_batch_fails_loudly(
    db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any
) -> None:
    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> Any:
        await insert_each(context, items, face)
        return {Ref(99): Fail("who?")}

    index = Range(queue, worker_engine, work, max_attempts=1)
    ids = db.put_many(index.task, 2)
    drain(worker(queue, worker_engine, strategy))
    assert {json.loads(row.error)["type"].rpartition(".")[2] for row in db.rows(ids)} == {"UnknownItem"}
    assert numbers(db) == []


def test_unique_keys_are_freed_for_each(db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any) -> None:
    index = Range(queue, worker_engine, insert_each)
    keyed = [index.task.using(unique_key=str(n)).new(n=n) for n in range(3)]
    for new in keyed:
        db.put_new(index.task, [new])
    drain(worker(queue, worker_engine, strategy))
    assert {row.unique_hash for row in db.rows([new.id for new in keyed])} == {None}


@pytest.mark.servers("postgresql", "mysql", "mariadb")  # on SQLite the handler's transaction excludes other writers
def test_a_task_that_was_taken_away_takes_no_effect_with_it(db: Database, queue: TaskQueue, worker_engine: Any) -> None:
    """Its effect cannot be told from that of the others: all is undone, the others run again."""

    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> None:
        await insert_each(context, items, face)
        await face.flush()
        if len(items) == 4:
            lost = next(item for item in items if item.n == 2)
            db.raise_epoch(context.task(lost).id)

    index = Range(queue, worker_engine, work)
    ids = db.put_many(index.task, 4)
    with running(worker(queue, worker_engine, Lease(), drain=False)) as serving:
        eventually(lambda: serving.counts.completed == 3)
        serving.stop()
    assert numbers(db) == [0, 1, 3]
    assert [row.attempt for row in db.rows(ids)] == [1, 1, 1, 1]
    assert (serving.counts.lost, serving.counts.released) == (1, 3)


def test_single_handlers_and_unknown_names_beside_a_batch(
    db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any
) -> None:
    single_ran: list[int] = []

    @queue.task(retry=fixed(0))
    def single(n: int) -> None:
        single_ran.append(n)
        if n == 1 and single_ran.count(1) == 1:
            raise ValueError("once")

    async def work(context: BatchContext, items: list[Ref], face: _Sync) -> None:
        await insert_each(context, items, face)
        if len(items) > 1:
            await face.flush()
            raise ValueError("together")

    index = Range(queue, worker_engine, work)
    foreign = db.put(TaskQueue(Task).named("elsewhere"), n=1)
    ids = [task for pair in zip(db.put_many(index.task, 3), db.put_many(single, 3), strict=True) for task in pair]
    drain(worker(queue, worker_engine, strategy))
    assert {row.status for row in db.rows(ids)} == {"COMPLETED"}
    assert sorted(single_ran) == [0, 1, 1, 2]
    assert numbers(db) == [0, 1, 2]
    assert (db.row(foreign).status, db.row(foreign).attempt) == ("SCHEDULED", 0)


def test_max_tasks_counts_tasks(db: Database, queue: TaskQueue, worker_engine: Any, strategy: Any) -> None:
    index = Range(queue, worker_engine, insert_each, max_wait=3600)
    db.put_many(index.task, 9)
    done = worker(queue, worker_engine, strategy, drain=False, max_tasks=7)
    with running(done):
        pass
    assert (done.counts.claimed, done.counts.completed) == (7, 7)
    assert len(numbers(db)) == 7


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_rows_locked_together_are_committed_together(db: Database, queue: TaskQueue, worker_engine: Any) -> None:
    """Single handlers under RowLock(batch=N): a savepoint each, one COMMIT."""
    seen: list[int] = []
    is_async = hasattr(worker_engine, "sync_engine")

    def done_so_far() -> int:
        with db.engine.connect() as connection:
            return connection.scalar(select(func.count()).where(db.table.c.status == Status.COMPLETED)) or 0

    def body(context: TaskContext, session: Any, n: int) -> None:
        seen.append(done_so_far())
        session.add(Effect(task_id="", note=str(n)))
        if n == 2:
            raise ValueError("bad")

    if is_async:

        @queue.task(name="single", max_attempts=1)
        async def on_loop(context: TaskContext, n: int) -> None:
            body(context, context.async_session, n)
            await context.async_session.flush()

        single: Any = on_loop
    else:

        @queue.task(name="single", max_attempts=1)
        def in_thread(context: TaskContext, n: int) -> None:
            body(context, context.session, n)
            context.session.flush()

        single = in_thread
    ids = db.put_many(single, 5)
    drain(worker(queue, worker_engine, RowLock(batch=5)))
    assert seen == [0] * 5
    assert [row.status for row in db.rows(ids)] == ["COMPLETED"] * 2 + ["FAILED"] + ["COMPLETED"] * 2
    assert numbers(db) == [0, 1, 3, 4]


def _set_body(db: Database, task: UUID, body: str) -> None:
    value = json.loads(body) if not isinstance(db.row(task).body, str) else body
    with db.engine.begin() as connection:
        connection.execute(update(db.table).where(db.table.c.id == task).values(body=value))
