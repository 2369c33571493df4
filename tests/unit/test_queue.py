from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import orm

from sa_taskqueue import QueueMixin, Status, TaskContext, TaskQueue
from sa_taskqueue.exceptions import (
    DuplicateHandler,
    InvalidAttempts,
    InvalidHandler,
    InvalidName,
    InvalidPriority,
    InvalidSetting,
    UnknownTask,
)
from tests.models import Base, Order, Task


@pytest.fixture
def queue() -> TaskQueue:
    return TaskQueue(Task)


def handler(a: int) -> int:
    return a + 1


async def async_handler(a: int) -> int:
    return a + 1


def test_a_queue_knows_its_table_and_its_handlers(queue: TaskQueue) -> None:
    task = queue.task(handler)
    assert queue.table is Task.__table__
    assert dict(queue.handlers) == {"handler": task}
    assert task.task_queue is queue
    with pytest.raises(TypeError):
        queue.handlers["x"] = task  # type: ignore[index]


def test_a_task_is_still_its_function(queue: TaskQueue) -> None:
    task = queue.task(handler)
    assert task(1) == 2
    assert (task.__name__, task.__doc__, task.__module__) == ("handler", None, __name__)  # type: ignore[attr-defined]
    assert not task.is_async


async def test_an_async_task_is_still_its_function(queue: TaskQueue) -> None:
    task = queue.task(async_handler)
    assert task.is_async
    assert await task(1) == 2


def test_an_async_callable_object_is_async(queue: TaskQueue) -> None:
    class Callable:
        async def __call__(self, a: int) -> None:
            await asyncio.sleep(0)

    assert queue.task(name="callable")(Callable()).is_async


def test_a_function_attribute_cannot_change_the_task(queue: TaskQueue) -> None:
    def odd() -> None: ...

    odd.name = "other"  # type: ignore[attr-defined]
    assert queue.task(odd).name == "odd"


def test_a_handler_with_a_context_is_called_through_its_function(queue: TaskQueue) -> None:
    def with_context(context: TaskContext, a: int) -> int:
        return a

    task = queue.task(with_context)
    with pytest.raises(TypeError, match=r"\.function\(context"):
        task(1)
    assert task.function(None, 1) == 1


def test_the_decorator_s_settings_are_kept(queue: TaskQueue) -> None:
    task = queue.task(name="mail.send:v2", queue="mail", lease=timedelta(minutes=2), timeout=30, store_result=True)(
        handler
    )
    assert (task.name, task.queue, task.lease, task.timeout) == ("mail.send:v2", "mail", 120.0, 30.0)
    assert task.store_result


def test_two_handlers_of_one_name_are_refused_and_both_named(queue: TaskQueue) -> None:
    queue.task(handler)
    with pytest.raises(DuplicateHandler, match=r"test_queue\.handler and .*test_queue\.async_handler"):
        queue.task(name="handler")(async_handler)


def test_one_function_may_have_two_names(queue: TaskQueue) -> None:
    queue.task(handler)
    assert queue.task(name="twin")(handler).new(1).name == "twin"


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("wrong", [generator, async_generator, int, "handler", type("Job", (), {})])
def test_what_is_not_a_function_that_runs_is_refused(queue: TaskQueue, wrong: Any) -> None:
    with pytest.raises(InvalidHandler):
        queue.task(name="wrong")(wrong)
    assert not queue.handlers


def test_registering_a_task_again_is_refused(queue: TaskQueue) -> None:
    with pytest.raises(InvalidHandler, match="registered already"):
        queue.task(name="again")(queue.task(handler))


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"name": ""}, InvalidName),
        ({"name": "x" * 121}, InvalidName),
        ({"name": "a b"}, InvalidName),
        ({"queue": ""}, InvalidName),
        ({"priority": 200}, InvalidPriority),
        ({"lease": 0}, InvalidSetting),
        ({"lease": float("nan")}, InvalidSetting),
        ({"lease": "60"}, InvalidSetting),
        ({"timeout": timedelta(seconds=-1)}, InvalidSetting),
        ({"timeout": True}, InvalidSetting),
        ({"max_attempts": 0}, InvalidAttempts),
    ],
)
def test_a_wrong_setting_is_refused_where_the_handler_is_defined(
    queue: TaskQueue, settings: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        queue.task(**settings)(handler)
    assert not queue.handlers


def test_a_name_in_place_of_the_function_is_refused(queue: TaskQueue) -> None:
    with pytest.raises(InvalidHandler, match="not a function"):
        queue.task("send")  # type: ignore[call-overload]


def test_a_lambda_needs_a_name(queue: TaskQueue) -> None:
    with pytest.raises(InvalidHandler, match=r"@queue\.task\(name="):
        queue.task(lambda: None)


@pytest.mark.parametrize("model", [Order, Base, Task.__table__, "Task"])
def test_a_model_that_holds_no_tasks_is_refused_with_the_mixin_named(model: Any) -> None:
    with pytest.raises(InvalidSetting, match="QueueMixin"):
        _ = TaskQueue(model).table


def test_a_mapped_model_that_holds_no_tasks_is_refused_when_the_queue_is_made() -> None:
    with pytest.raises(InvalidSetting, match="QueueMixin"):
        TaskQueue(Order)


def test_a_model_may_be_mapped_after_its_queue_is_made() -> None:
    class Later(QueueMixin):
        __tablename__ = "later"

    queue = TaskQueue(Later)
    orm.registry().mapped(Later)
    assert queue.table.name == "later"
    assert queue.row_class is Later


def test_a_number_in_place_of_a_retry_policy_is_refused(queue: TaskQueue) -> None:
    with pytest.raises(InvalidSetting, match=r"retry is 3.*max_attempts="):
        queue.task(retry=3)(handler)  # type: ignore[call-overload]
    with pytest.raises(InvalidSetting, match="retry is 3"):
        TaskQueue(Task, retry=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"default_queue": "a b"},
        {"max_body": 0},
        {"max_body": True},
        {"max_attempts": 0},
        {"retention": {Status.NEW: timedelta(1)}},
        {"retention": {Status.FAILED: timedelta(-1)}},
        {"retention": {Status.FAILED: 60}},
    ],
)
def test_a_queue_that_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has a name of its own
        TaskQueue(Task, **settings)


def test_a_class_without_a_table_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="model"):
        TaskQueue(int).table  # noqa: B018 - the property is what raises


def test_finished_rows_are_kept_for_the_time_that_was_chosen() -> None:
    kept = TaskQueue(Task, retention={Status.COMPLETED: timedelta(0)}).retention
    assert kept == {
        Status.COMPLETED: timedelta(0),
        Status.FAILED: timedelta(days=14),
        Status.CANCELLED: timedelta(days=14),
    }


def test_a_task_of_another_program_is_enqueued_by_its_name(queue: TaskQueue) -> None:
    task = queue.named("billing.charge", queue="billing").new(order_id=5, amount=[1, 2])
    assert (task.name, task.queue) == ("billing.charge", "billing")
    assert json.loads(task.body) == {"order_id": 5, "amount": [1, 2]}
    assert not queue.handlers


def test_a_known_name_gives_the_handler_s_own_task(queue: TaskQueue) -> None:
    task = queue.task(handler)
    assert queue.named("handler") is task


def test_a_strict_queue_refuses_unknown_names_and_tells_the_nearest() -> None:
    queue = TaskQueue(Task, known_tasks_only=True)
    queue.task(handler)
    with pytest.raises(UnknownTask, match="near it: handler"):
        queue.named("handlre")
