from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sa_taskqueue import TaskQueue, exponential, fixed
from sa_taskqueue.exceptions import (
    BodyTooLarge,
    InvalidAttempts,
    InvalidDatetime,
    InvalidDelay,
    InvalidHeaders,
    InvalidName,
    InvalidPriority,
    InvalidSetting,
    InvalidTask,
    InvalidUniqueKey,
    NaiveDatetime,
)
from tests.models import Task

queue = TaskQueue(Task)


@queue.task(queue="mail", priority=-3)
def send(to: str = "x") -> None: ...


def test_a_task_has_the_options_of_its_handler() -> None:
    task = send.new("a")
    assert (task.name, task.queue, task.priority, task.max_attempts) == ("send", "mail", -3, 10)
    assert (task.run_at, task.delay, task.headers, task.unique_key, task.unique_hash) == (None,) * 5
    assert task.id.version == 7


def test_using_wins_over_the_handler_and_leaves_it_as_it_was() -> None:
    id_ = uuid.uuid4()
    task = send.using(queue="slow", priority=5, max_attempts=2, headers={"trace": "é"}, id=id_).new("a")
    assert (task.queue, task.priority, task.max_attempts, task.headers, task.id) == ("slow", 5, 2, '{"trace":"é"}', id_)
    assert send.new("a").queue == "mail"


def test_the_decorator_wins_over_its_policy_and_that_over_the_queue() -> None:
    own = TaskQueue(Task, max_attempts=4, retry=exponential(max_attempts=6))
    policy = exponential(max_attempts=8) | fixed(1)
    limits = [
        own.task(name="a", retry=policy, max_attempts=2)(lambda: None).new().max_attempts,
        own.task(name="b", retry=policy)(lambda: None).new().max_attempts,
        own.task(name="c", retry=fixed(1))(lambda: None).new().max_attempts,
        own.task(name="d")(lambda: None).new().max_attempts,
    ]
    assert limits == [2, 8, 4, 4]


def test_run_after_takes_a_delay_or_a_moment_which_is_stored_in_utc() -> None:
    assert send.using(run_after=timedelta(hours=1)).new().delay == timedelta(hours=1)
    moment = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    run_at = send.using(run_after=moment).new().run_at
    assert run_at == moment
    assert run_at is not None
    assert run_at.tzinfo is UTC


def test_no_delay_is_now_and_a_moment_long_past_is_kept() -> None:
    now = send.using(run_after=timedelta(0)).new()
    assert (now.run_at, now.delay) == (None, None)
    assert send.using(run_after=datetime(1990, 1, 1, tzinfo=UTC)).new().run_at is not None


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"run_after": timedelta(seconds=-1)}, InvalidDelay),
        ({"run_after": timedelta(days=40_000)}, InvalidDelay),
        ({"run_after": timedelta.max}, InvalidDelay),
        ({"run_after": datetime(2026, 1, 1)}, NaiveDatetime),  # noqa: DTZ001 - that is the case
        ({"run_after": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))}, InvalidDatetime),
        ({"run_after": datetime(9001, 1, 1, tzinfo=UTC)}, InvalidDatetime),
        ({"run_after": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))}, InvalidDatetime),
        ({"run_after": 5}, InvalidSetting),
        ({"queue": ""}, InvalidName),
        ({"queue": "x" * 65}, InvalidName),
        ({"queue": "a b"}, InvalidName),
        ({"queue": "a\n"}, InvalidName),
        ({"queue": "a\0"}, InvalidName),
        ({"queue": "grün"}, InvalidName),
        ({"queue": "'; DROP TABLE task; --"}, InvalidName),
        ({"queue": 5}, InvalidName),
        ({"priority": 101}, InvalidPriority),
        ({"priority": -101}, InvalidPriority),
        ({"priority": True}, InvalidPriority),
        ({"priority": 1.0}, InvalidPriority),
        ({"priority": "1"}, InvalidPriority),
        ({"max_attempts": 0}, InvalidAttempts),
        ({"max_attempts": -1}, InvalidAttempts),
        ({"max_attempts": 1001}, InvalidAttempts),
        ({"max_attempts": True}, InvalidAttempts),
        ({"unique_key": ""}, InvalidUniqueKey),
        ({"unique_key": "x" * 1025}, InvalidUniqueKey),
        ({"unique_key": "a\0"}, InvalidUniqueKey),
        ({"unique_key": "\ud800"}, InvalidUniqueKey),
        ({"unique_key": 5}, InvalidUniqueKey),
        ({"unique_key": "a", "unique_until": "never"}, InvalidSetting),
        ({"unique_key": "a", "on_duplicate": "drop"}, InvalidSetting),
        ({"headers": {"a": 1}}, InvalidHeaders),
        ({"headers": {1: "a"}}, InvalidHeaders),
        ({"headers": {"a": "\0"}}, InvalidHeaders),
        ({"headers": {"\ud800": "a"}}, InvalidHeaders),
        ({"headers": [("a", "b")]}, InvalidHeaders),
        ({"headers": {"a": "x" * 20_000}}, InvalidHeaders),
        ({"id": "a"}, InvalidSetting),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        send.using(**options)
    assert isinstance(caught.value, ValueError)


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        send.using(delay=5)  # type: ignore[call-arg]


@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_the_limits_themselves_are_allowed(priority: int) -> None:
    task = send.using(priority=priority, max_attempts=1000, queue="q" * 64, unique_key="k" * 1024).new()
    assert task.priority == priority


def test_a_unique_key_is_hashed_with_the_task_name() -> None:
    task = send.using(unique_key="order 5", unique_until="start", on_duplicate="raise").new()
    assert task.unique_hash == hashlib.sha256(b"send\0order 5").digest()
    assert (task.unique_key, task.unique_until, task.on_duplicate) == ("order 5", "start", "raise")


def test_keys_that_a_collation_calls_equal_have_different_hashes() -> None:
    hashes = {send.using(unique_key=key).new().unique_hash for key in ("dup", "DUP", "dup ", "düp", "du\u0308p")}
    assert len(hashes) == 5


def test_without_a_unique_key_nothing_is_unique() -> None:
    task = send.using(unique_until="start", on_duplicate="raise").new()
    assert (task.unique_hash, task.unique_until, task.on_duplicate) == (None, None, None)


def test_no_headers_and_empty_headers_are_the_same() -> None:
    assert send.using(headers={}).new().headers is None
    assert json.loads(send.using(headers={"a": "b"}).new().headers or "") == {"a": "b"}


def test_the_size_limit_of_the_queue_counts() -> None:
    small = TaskQueue(Task, max_body=20).task(name="send")(send.function)
    small.new("x" * 11)
    with pytest.raises(BodyTooLarge):
        small.new("x" * 12)


def test_everything_refused_is_an_invalid_task_or_setting() -> None:
    assert issubclass(InvalidTask, ValueError)
    assert issubclass(InvalidSetting, ValueError)
