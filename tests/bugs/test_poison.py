"""A row, an error or a result that cannot be handled harms its own task and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, insert, update
from sqlalchemy.exc import IntegrityError, OperationalError

import sa_taskqueue
from sa_taskqueue.control import Choice, Control
from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.ids import new_id
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import RetryPolicy, fixed, never
from sa_taskqueue.states import Cancel, Fail, Outcome, Retry, Snooze, Status
from sa_taskqueue.worker import Worker
from tests.worker.support import Database, drain

NO_TEXT_AT_ALL = object()


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Numeric(Exception):
    """An exception whose text is no string."""

    def __str__(self) -> str:
        return 7  # type: ignore[return-value]  # noqa: PLE0307 - what is tested


class OwnOutcome(Outcome):
    pass


def _recursive() -> None:
    _recursive()


def _raiser(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def _caused_by_itself() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


# What a handler raises, and how its task must have ended.
ENDS: dict[str, tuple[Callable[[], None], Status]] = {
    "a text that cannot be made": (_raiser(Unprintable()), Status.FAILED),
    "a text that is none": (_raiser(Numeric()), Status.FAILED),
    "NUL and half a surrogate pair": (_raiser(ValueError("a\0b\ud800c")), Status.FAILED),
    "10 MB of text": (_raiser(ValueError("é" * 5_000_000)), Status.FAILED),
    "a thousand errors": (_raiser(ExceptionGroup("many", [ValueError(str(n)) for n in range(1000)])), Status.FAILED),
    "a cause that is its own": (_caused_by_itself, Status.FAILED),
    "the deepest recursion": (_recursive, Status.FAILED),
    "StopIteration": (_raiser(StopIteration(1)), Status.FAILED),
    "an error of a database": (_raiser(OperationalError("SELECT 1", {}, Exception("gone away"))), Status.FAILED),
    "a lost connection": (
        _raiser(OperationalError("SELECT 1", {}, Exception("gone"), connection_invalidated=True)),
        Status.FAILED,
    ),
    "a duplicate": (_raiser(IntegrityError("INSERT", {}, Exception("UNIQUE constraint failed"))), Status.FAILED),
    "an error of the library": (_raiser(CommitUnknown()), Status.FAILED),
    "TimeoutError": (_raiser(TimeoutError()), Status.FAILED),
    "a reason that is a number": (_raiser(Fail(7)), Status.FAILED),  # type: ignore[arg-type]
    "a reason that is an error": (_raiser(Fail(KeyError("x"))), Status.FAILED),  # type: ignore[arg-type]
    "a reason that is None": (_raiser(Fail(None)), Status.FAILED),  # type: ignore[arg-type]
    "a reason that cannot be stored": (_raiser(Fail("\0\udfff")), Status.FAILED),
    "a reason without a text": (_raiser(Cancel(Unprintable())), Status.CANCELLED),  # type: ignore[arg-type]
    "a retry for a reason that is none": (_raiser(Retry(3600, NO_TEXT_AT_ALL)), Status.SCHEDULED),  # type: ignore[arg-type]
    "a retry in no time there is": (_raiser(Retry(1e300)), Status.SCHEDULED),
    "a retry after infinity": (_raiser(Retry(float("inf"))), Status.SCHEDULED),
    "a snooze for ten thousand years": (_raiser(Snooze(1e12)), Status.SCHEDULED),
    "an outcome of the user's own": (_raiser(OwnOutcome("?")), Status.FAILED),
}


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_a_handler_raises_its_task_ends_and_the_next_one_runs(
    engine: Engine, db: Database, queue: TaskQueue, kind: str
) -> None:
    """collectiveidea/delayed_job#846, rails/solid_queue 90f4e13, dbos-transact-py#704,
    kagkarlsson/db-scheduler#191: the path that records a failure must not fail itself."""

    def work(case: str) -> None:
        ENDS[case][0]()

    async def work_async(case: str) -> None:
        await asyncio.sleep(0)
        ENDS[case][0]()

    failing: Any = queue.task(name="work", retry=never)(work if kind == "sync" else work_async)

    @queue.task
    def good(n: int) -> None: ...

    ids = {case: db.put(failing, case=case) for case in ENDS}
    others = db.put_many(good, 20)
    drain(Worker(queue, engine, queues={"default": 2}, drain=True))
    assert {case: db.row(ids[case]).status for case in ENDS} == {case: status for case, (_, status) in ENDS.items()}
    told = {case: db.row(task_id).error for case, task_id in ids.items()}
    assert [case for case, error in told.items() if error is None] == ["a snooze for ten thousand years"]
    assert all(json.loads(error)["code"] for error in told.values() if error is not None)
    assert {row.status for row in db.rows(others)} == {Status.COMPLETED}


class BadPolicy(RetryPolicy):
    """A policy of the user's own that gives `answer`, or raises it."""

    def __init__(self, answer: Any) -> None:
        super().__init__(fixed(1)._rules)
        self._answer = answer

    def delay(self, *_: Any, **__: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


ANSWERS: list[Any] = [ZeroDivisionError(), float("nan"), -5, 10**12, float("inf"), "soon"]


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_a_retry_policy_that_answers_nonsense_does_not_lose_the_task(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """apache/airflow#47971, PostHog/posthog#79379: back-off arithmetic must not end the loop that does it."""

    def work() -> None:
        raise ValueError("no")

    @queue.task
    def good(n: int) -> None: ...

    failing = [
        queue.task(name=f"work{n}", retry=BadPolicy(answer), max_attempts=2)(work) for n, answer in enumerate(ANSWERS)
    ]
    ids = [db.put(task) for task in failing]
    others = db.put_many(good, 5)
    drain(Worker(queue, engine, queues={"default": 1}, drain=True))
    for row in db.rows(ids):
        assert row.status in (Status.SCHEDULED, Status.FAILED)
        assert json.loads(row.error)["message"] == "no"
    assert {row.status for row in db.rows(others)} == {Status.COMPLETED}


def _in_itself() -> object:
    one: list[object] = []
    one.append(one)
    return one


RESULTS: dict[str, Callable[[], object]] = {
    "NUL": lambda: "a\0b",
    "half a surrogate pair": lambda: {"x": "\ud800"},
    "NaN": lambda: [float("nan")],
    "5 MB": lambda: "x" * 5_000_000,
    "a set": lambda: {1, 2},
    "an object without a text": Unprintable,
    "an object that holds itself": _in_itself,
    "a number with too many digits": lambda: 10**5000,
}


def test_a_result_that_cannot_be_stored_does_not_run_the_work_again(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """windmill-labs/windmill#10274, hardbyte/awa#85: the work is done, whatever becomes of its result."""
    ran: list[str] = []

    @queue.task(store_result=True)
    def work(case: str) -> object:
        ran.append(case)
        return RESULTS[case]()

    ids = {case: db.put(work, case=case) for case in RESULTS}
    drain(Worker(queue, engine, drain=True))
    assert {case: db.row(ids[case]).status for case in RESULTS} == dict.fromkeys(RESULTS, Status.COMPLETED)
    assert {case: json.loads(db.row(ids[case]).error)["code"] for case in RESULTS} == dict.fromkeys(
        RESULTS, "result_error"
    )
    assert sorted(ran) == sorted(RESULTS)


def test_results_of_a_batch_may_be_larger_together_than_one_statement_may_be(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """Koed00/django-q#76: MySQL answers a statement that is too large by closing the connection, again and again."""

    @queue.task(store_result=True)
    def work(n: int) -> str:
        return "x" * 250_000

    db.put_many(work, 100)
    worker = drain(Worker(queue, engine, drain=True))
    assert db.statuses() == {Status.COMPLETED: 100}
    assert worker.counts.lost == 0


@pytest.mark.parametrize("answer", [None, False, 0, "", []], ids=repr)
@pytest.mark.servers("sqlite")
def test_an_empty_result_is_a_result(engine: Engine, db: Database, queue: TaskQueue, answer: object) -> None:
    """dbos-transact-py#172: None must not be read as no result, and the work must not run again."""
    ran: list[int] = []

    @queue.task(store_result=True)
    def work() -> object:
        ran.append(1)
        return answer

    task_id = db.put(work)
    drain(Worker(queue, engine, drain=True))
    row = db.row(task_id)
    assert (row.status, ran) == (Status.COMPLETED, [1])
    assert (None if row.result is None else json.loads(row.result)) == answer


# Bodies that JSON columns take, and bodies that only text columns do.
JSON_BODIES = ("[1, 2]", '"text"', "null", "7", "{}", '{"n": null}', '{"n": 1, "x": 2}', "[" * 3000 + "]" * 3000)
TEXT_BODIES = ("", "{", "not JSON", '{"n": NaN}', "\N{REPLACEMENT CHARACTER}", '{"n": 1}{"n": 2}')


def test_bodies_nobody_can_decode_are_parked_with_a_reason_and_what_is_behind_them_runs(
    engine: Engine, server: str, db: Database, queue: TaskQueue
) -> None:
    """kestra-io/kestra#19734, collectiveidea/delayed_job#846: one such row must not end a batch, nor the worker."""
    bodies = JSON_BODIES if server.startswith("postgresql") else JSON_BODIES + TEXT_BODIES
    bad = [new_id() for _ in bodies]
    with db.engine.begin() as connection:
        rows = [{"id": one, "name": "work", "body": body} for one, body in zip(bad, bodies, strict=True)]
        connection.execute(insert(db.table), rows)

    @queue.task
    def work(n: int) -> None: ...

    good = db.put_many(work, 50)
    drain(Worker(queue, engine, drain=True))
    assert {row.status for row in db.rows(good)} == {Status.COMPLETED}
    for row in db.rows(bad):
        error = json.loads(row.error)
        assert (row.status, error["code"], row.attempt) == (Status.FAILED, "undecodable", 1)
        assert error["message"]


UNREADABLE = {
    "scheduled_at": "never",
    "ready_at": "yesterday",
    "created_at": 7,
    "body": b"\xff\xfe",
    "headers": b"\x80",
    "attempt": "many",
    "priority": "high",
    "epoch": "?",
    "crashes": "x",
}


@pytest.mark.servers("sqlite")
@pytest.mark.parametrize("status", [Status.NEW, Status.SCHEDULED, Status.RUNNING, Status.COMPLETED])
async def test_a_row_nobody_can_read_leaves_lists_counts_and_operations_working(
    engine: Engine, db: Database, queue: TaskQueue, status: Status
) -> None:
    """dbos-transact-py#694, kestra-io/kestra#19734: one bad row must not make every list and sweep fail.

    SQLite alone stores values of any type in any column.
    """

    @queue.task
    def work(n: int) -> None: ...

    bad = db.put_many(work, len(UNREADABLE))
    with db.engine.begin() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        for task_id, (column, value) in zip(bad, UNREADABLE.items(), strict=True):
            ended = "finished_at = created_at, reserved_until = created_at,"
            values = (status, value, task_id.bytes)
            raw.execute(f"UPDATE task SET {ended} status = ?, {column} = ? WHERE id = ?", values)
    good = db.put_many(work, 10)
    async with Control(queue, engine) as control:
        assert await control.statistics()
        assert {task.id for task in await control.list_tasks(limit=100)} >= set(good)
        await control.cancel(Choice(), running=True)
        await control.retry(Choice())
    await Worker(queue, engine, drain=True).serve()
    async with Control(queue, engine) as control:
        assert {task.status for task in await control.list_tasks(limit=100) if task.id in good} == {Status.COMPLETED}


NAMES = ("os:system", "os.system", "builtins.eval", "subprocess:call", "sa_taskqueue.worker:Worker", "__import__")


@pytest.mark.servers("sqlite")
def test_a_name_in_a_row_is_looked_up_and_never_imported(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """coleifer/huey#901, agronholm/apscheduler#1113: whoever can write the table must not run code in the workers."""
    ran: list[object] = []

    @queue.task
    def known(value: object) -> None:
        ran.append(value)

    with db.engine.begin() as connection:
        rows = [{"id": new_id(), "name": name, "body": '{"value": "touch /tmp/x"}'} for name in NAMES]
        connection.execute(insert(db.table), rows)
        hooks = '{"value": {"__class__": "os._wrap_close", "__reduce__": ["os.system", ["false"]], "py/object": "x"}}'
        connection.execute(insert(db.table), [{"id": new_id(), "name": "known", "body": hooks}])
    worker = drain(Worker(queue, engine, drain=True, unknown_delay=3600))
    assert ran == [json.loads(hooks)["value"]]
    assert (worker.counts.unknown, worker.counts.completed) == (len(NAMES), 1)


def test_nothing_of_the_package_can_turn_stored_bytes_into_code() -> None:
    """coleifer/huey#901, rq/rq#2389: no pickle, no marshal, no YAML, no eval."""
    package = Path(sa_taskqueue.__file__).parent
    dangerous = re.compile(r"\b(pickle|marshal|shelve|dill|yaml)\b|\b(eval|exec)\(|import_module|__import__\(")
    sources = {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    found = {name for name, text in sources.items() if dangerous.search(text)}
    # The CLI's target is named by whoever starts it; the package's own names are imported when first asked for, and its
    # publishers from a table of its own, by the scheme of a URL.
    assert found == {"cli/loading.py", "__init__.py", "publishers/registry.py"}


@pytest.mark.servers("sqlite", "postgresql")
def test_a_renamed_handler_takes_what_was_stored_before(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """kagkarlsson/db-scheduler#804: a renamed handler still takes what was stored under its old name."""
    ran: list[int] = []

    def work(n: int) -> None:
        ran.append(n)

    queue.task(name="new.name")(work)
    old = queue.task(name="old.name")(work)
    task_id = db.put(old, n=1)
    with db.engine.begin() as connection:
        connection.execute(update(db.table).values(name="old.name"))
    drain(Worker(queue, engine, drain=True))
    assert (ran, db.row(task_id).status) == ([1], Status.COMPLETED)
