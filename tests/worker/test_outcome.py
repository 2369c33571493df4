from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from sa_taskqueue.ids import new_id
from sa_taskqueue.queue import DEFAULT_RETENTION, TaskQueue
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.runtime import errors
from sa_taskqueue.states import Cancel, Complete, Fail, Outcome, Retry, Snooze, Status
from sa_taskqueue.store import Claimed, Settlement
from sa_taskqueue.worker.outcome import HandlerTimeout, Outcomes
from tests.models import Task

outcomes = Outcomes(DEFAULT_RETENTION)
queue = TaskQueue(Task)


@queue.task(retry=fixed(7) | never.on(KeyError))
def plain() -> None: ...


@queue.task(store_result=True)
def with_result() -> object: ...


def claimed(**changes: Any) -> Claimed:
    now = dt.datetime.now(dt.UTC)
    task = Claimed(
        id=new_id(),
        name="plain",
        queue="default",
        priority=0,
        body="{}",
        headers=None,
        attempt=1,
        max_attempts=3,
        crashes=0,
        epoch=4,
        errors=None,
        error=None,
        scheduled_at=now,
        created_at=now,
    )
    return task._replace(**changes)


def error_of(settlement: Settlement) -> dict[str, Any]:
    assert settlement.error is not None
    entry: dict[str, Any] = json.loads(settlement.error)
    return entry


def raised(error: BaseException, **changes: Any) -> Settlement:
    try:
        raise error
    except BaseException as caught:
        return outcomes.raised(claimed(**changes), plain, caught)


def test_a_return_completes_and_keeps_no_result_unless_asked() -> None:
    task = claimed()
    assert outcomes.returned(task, plain, 42) == Settlement(task.id, task.epoch, Status.COMPLETED)


def test_a_result_is_stored_when_asked() -> None:
    assert outcomes.returned(claimed(), with_result, {"n": 1}).result == '{"n":1}'
    assert outcomes.returned(claimed(), with_result, Complete([2])).result == "[2]"


def test_a_result_that_is_not_json_completes_with_its_error() -> None:
    settlement = outcomes.returned(claimed(), with_result, object())
    assert (settlement.status, settlement.result) == (Status.COMPLETED, None)
    assert error_of(settlement)["code"] == "result_error"


def test_an_exception_is_retried_after_the_policys_delay() -> None:
    settlement = raised(ValueError("no"))
    assert (settlement.status, settlement.delay, settlement.count_attempt) == (Status.SCHEDULED, 7.0, True)
    entry = error_of(settlement)
    assert (entry["code"], entry["type"], entry["message"], entry["attempt"]) == ("error", "ValueError", "no", 1)
    assert "test_outcome.py" in entry["traceback"]


def test_the_last_attempt_fails() -> None:
    assert raised(ValueError("no"), attempt=3).status is Status.FAILED


def test_a_policy_that_says_never_fails_at_once() -> None:
    assert raised(KeyError("no")).status is Status.FAILED


@pytest.mark.parametrize("returned", [True, False], ids=["returned", "raised"])
@pytest.mark.parametrize(
    ("outcome", "status", "delay", "counted"),
    [
        (Retry(30), Status.SCHEDULED, 30.0, True),
        (Retry(), Status.SCHEDULED, 7.0, True),
        (Snooze(dt.timedelta(minutes=1)), Status.SCHEDULED, 60.0, False),
        (Cancel("not needed"), Status.CANCELLED, 0.0, True),
        (Fail("for good"), Status.FAILED, 0.0, True),
        (Complete(), Status.COMPLETED, 0.0, True),
    ],
)
def test_an_outcome_may_be_returned_or_raised(
    outcome: Outcome, status: Status, delay: float, counted: bool, returned: bool
) -> None:
    settlement = outcomes.returned(claimed(), plain, outcome) if returned else raised(outcome)
    assert (settlement.status, settlement.delay, settlement.count_attempt) == (status, delay, counted)


def test_retry_on_the_last_attempt_fails() -> None:
    assert raised(Retry(5, "again"), attempt=3).status is Status.FAILED


def test_a_snooze_on_the_last_attempt_still_goes_on() -> None:
    assert raised(Snooze(5), attempt=3).status is Status.SCHEDULED


def test_reasons_are_kept() -> None:
    assert error_of(raised(Fail("for good")))["message"] == "for good"
    assert error_of(raised(Cancel("not needed")))["message"] == "not needed"


def test_an_outcome_of_an_unknown_kind_is_an_error() -> None:
    class Odd(Outcome):
        pass

    assert error_of(raised(Odd()))["type"].endswith("Odd")


def test_a_timeout_has_its_own_code() -> None:
    assert error_of(raised(HandlerTimeout("too long")))["code"] == "timeout"


def test_a_body_that_does_not_fit_fails_for_good() -> None:
    settlement = outcomes.undecodable(claimed(), ValueError("no"))
    assert (settlement.status, error_of(settlement)["code"]) == (Status.FAILED, "undecodable")


def test_a_status_kept_for_no_time_is_deleted() -> None:
    own = Outcomes({**DEFAULT_RETENTION, Status.COMPLETED: dt.timedelta(0)})
    assert own.returned(claimed(), plain, None).delete
    assert not own.undecodable(claimed(), ValueError("no")).delete


def test_errors_are_trimmed_and_storable_everywhere() -> None:
    entry = error_of(raised(ValueError("\x00\ud800" + "x" * 100_000)))
    assert len(entry["message"]) <= errors.MAX_MESSAGE
    assert len(entry["traceback"]) <= errors.MAX_TRACEBACK
    assert entry["message"].startswith("\\x00\\ud800")


def test_an_exception_without_a_text_is_named() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Broken" in error_of(raised(Broken()))["message"]


def test_the_history_keeps_the_newest_errors() -> None:
    history: str | None = None
    for attempt in range(1, 30):
        history = raised(ValueError(str(attempt)), attempt=attempt, max_attempts=100, errors=history).errors
    assert history is not None
    kept = json.loads(history)
    assert [entry["attempt"] for entry in kept] == list(range(30 - errors.MAX_HISTORY, 30))
    assert "traceback" not in kept[0]


@pytest.mark.parametrize("history", ["not json", "{}", "7", ""])
def test_a_history_nobody_can_read_is_begun_anew(history: str) -> None:
    settlement = raised(ValueError("no"), errors=history)
    assert settlement.errors is not None
    assert len(json.loads(settlement.errors)) == 1


def test_a_failed_attempt_is_logged_with_what_is_next_and_without_arguments(caplog: pytest.LogCaptureFixture) -> None:
    task = claimed()
    outcomes.raised(task, plain, ValueError("secret"))
    outcomes.raised(task, plain, KeyError("secret"))
    outcomes.undecodable(task, TypeError("secret"))
    outcomes.returned(task, plain, Fail("secret"))
    outcomes.returned(task, plain, Snooze(1))
    start = f"task {task.id} (plain), attempt 1: "
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("sa_taskqueue.worker", "WARNING", start + following)
        for following in ("ValueError; retry in 7.0 s", "KeyError; FAILED", "TypeError; FAILED", "Fail; FAILED")
    ]


def test_a_result_too_large_is_called_a_result() -> None:
    settlement = outcomes.returned(claimed(), with_result, "x" * 300_000)
    assert error_of(settlement)["message"].startswith("As JSON the result would take 300002 bytes")
