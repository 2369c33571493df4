"""Odd values and rows edited by hand, through the whole way on each server: they harm at most themselves."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from sqlalchemy import Engine, event, func, select, text

from sa_taskqueue.exceptions import InvalidDatetime
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import never
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.inputs.models import Job, work
from tests.worker.support import Database, drain

ODD = "Zoë 🦆 e\u0301 日本 \u202e"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_emoji_and_accents_come_through_as_they_are(engine: Engine, db: Database) -> None:
    queue = TaskQueue(Job)

    @queue.task(store_result=True)
    def echo(text: str) -> str:
        return text

    task_id = db.put(echo.using(headers={"who": ODD}, unique_key=ODD), ODD)
    assert db.row(task_id).unique_key == ODD
    drain(Worker(queue, engine, drain=True))
    row = db.row(task_id)
    assert (json.loads(row.result), json.loads(row.headers)) == (ODD, {"who": ODD})


def test_keys_that_differ_in_case_or_blanks_only_are_different(db: Database) -> None:
    for key in ("dup", "DUP ", "dup ", "DUP", "düp", "dup"):
        db.put(work.using(unique_key=key), key)
    assert db.statuses() == {Status.NEW: 5}


def test_the_year_9999_is_refused_before_any_sql(engine: Engine, db: Database) -> None:
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    with TaskSession(engine) as session, pytest.raises(InvalidDatetime, match="9999"):
        session.enqueue(work.using(run_after=dt.datetime(9999, 12, 31, tzinfo=dt.UTC)), "never")
    assert sent == []


@pytest.mark.parametrize(
    "error",
    [Unspeakable(), ValueError("x" * 10_000_000), ValueError("NUL \0 and \ud800 surrogate")],
    ids=["str", "10MB", "NUL"],
)
def test_an_errors_text_never_prevents_the_failure(engine: Engine, db: Database, error: Exception) -> None:
    queue = TaskQueue(Job)

    @queue.task(retry=never)
    def fail() -> None:
        raise error

    task_id = db.put(fail)
    drain(Worker(queue, engine, drain=True))
    row = db.row(task_id)
    assert row.status == Status.FAILED
    assert len(row.error) < 20_000
    assert json.loads(row.error)["type"] == type(error).__name__


@pytest.mark.parametrize(
    "result", ["x" * 20_000_000, object(), float("nan"), "\ud800"], ids=["20MB", "object", "NaN", "surrogate"]
)
def test_a_result_that_cannot_be_stored_is_dropped_and_the_task_done(
    engine: Engine, db: Database, result: object
) -> None:
    queue, runs = TaskQueue(Job), []

    @queue.task(store_result=True)
    def give() -> object:
        runs.append(1)
        return result

    task_id = db.put(give)
    drain(Worker(queue, engine, drain=True))
    row = db.row(task_id)
    assert (row.status, row.result, len(runs)) == (Status.COMPLETED, None, 1)
    assert json.loads(row.error)["code"] == "result_error"


@pytest.mark.parametrize(
    "edit",
    ["RUNNING", "PAUSED", "new"],
    ids=["RUNNING without lease", "unknown status", "status in small letters"],
)
def test_a_row_edited_by_hand_neither_blocks_nor_loops(engine: Engine, db: Database, edit: str) -> None:
    ran = _ran_beside(engine, db, f"UPDATE inputs_job SET status = '{edit}' WHERE priority = -1")
    assert ran == ["good"]
    status = db.table.c.status
    with db.engine.connect() as connection:
        found = {str(one): number for one, number in connection.execute(select(status, func.count()).group_by(status))}
    assert found == {edit: 1, "COMPLETED": 1}


@pytest.mark.parametrize("body", ["[1]", '"text"', "null", '{"text": 1, "more": 2}', "{}"])
def test_a_bad_body_fails_alone(engine: Engine, db: Database, body: str) -> None:
    assert _ran_beside(engine, db, "UPDATE inputs_job SET body = :body WHERE priority = -1", body=body) == ["good"]
    assert db.statuses() == {Status.FAILED: 1, Status.COMPLETED: 1}


def _ran_beside(engine: Engine, db: Database, edit: str, **values: str) -> list[str]:
    """Spoil the more urgent of two tasks, and return what ran."""
    queue, ran = TaskQueue(Job), []

    @queue.task(retry=never)
    def run(text: str) -> None:
        ran.append(text)

    db.put(run.using(priority=-1), "bad")
    db.put(run, "good")
    with db.engine.begin() as connection:
        connection.execute(text(edit), values)
    drain(Worker(queue, engine, drain=True))
    return ran
