# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, assert_type

from sqlalchemy.orm import DeclarativeBase

from sa_taskqueue import (
    BatchContext,
    Complete,
    NewTask,
    QueueMixin,
    Retry,
    TaskContext,
    TaskDefinition,
    TaskQueue,
    exponential,
    never,
)


class Base(DeclarativeBase):
    pass


class Task(QueueMixin, Base):
    __tablename__ = "task"


queue = TaskQueue(Task)


@queue.task
def bare(order_id: int, *, lang: str = "en") -> None: ...


@queue.task(queue="mail", retry=exponential(max_attempts=8) | never.on(ValueError), lease=timedelta(minutes=1))
def with_settings(order_id: int, amount: Decimal) -> str:
    return f"{order_id}: {amount}"


@queue.task
def with_context(context: TaskContext, order_id: int) -> None:
    context.extend(30)
    context.session.commit()


@queue.task(name="context.settings")
def with_context_and_settings(context: TaskContext, order_id: int, *, lang: str = "en") -> Complete | Retry:
    return Complete() if context.attempt == 1 else Retry(after=5)


@queue.task
async def async_bare(order_id: int) -> int:
    return order_id


@queue.task(timeout=30)
async def async_with_context(context: TaskContext, order_id: int) -> None:
    await context.aextend(30)
    await context.async_session.commit()


@queue.task
def without_arguments() -> None: ...


@queue.task
def only_context(context: TaskContext) -> None: ...


@queue.task
def of_anything(value: Any, other: int = 0) -> None: ...


@queue.task(name="object")
def of_an_object(value: object) -> None: ...


@queue.task
def of_a_context_without_name(_: TaskContext, /, order_id: int) -> None: ...


@queue.task
def of_any_keywords(**arguments: Any) -> None: ...


def checked_arguments() -> None:
    assert_type(bare.new(1), NewTask)
    bare.new(order_id=1, lang="fr")
    with_settings.new(1, Decimal(2))
    with_context.new(1)
    with_context.new(order_id=1)
    with_context_and_settings.new(1, lang="fr")
    async_bare.new(1)
    async_with_context.new(order_id=1)
    without_arguments.new()
    only_context.new()
    of_anything.new(1, other=2)
    of_anything.new(value=1)
    of_an_object.new("a")
    of_a_context_without_name.new(order_id=1)
    of_any_keywords.new(a=1)


def wrong_arguments() -> None:
    bare.new()  # type: ignore[call-arg]
    bare.new("1")  # type: ignore[arg-type]
    bare.new(1, "fr")  # type: ignore[call-arg]
    bare.new(1, language="fr")  # type: ignore[call-arg]
    bare.new(None)  # type: ignore[arg-type]
    with_settings.new(1, 2.5)  # type: ignore[arg-type]
    with_context.new()  # type: ignore[call-arg]
    with_context_and_settings.new("1")  # type: ignore[arg-type]
    async_with_context.new(1, 2)  # type: ignore[call-arg]
    only_context.new(1)  # type: ignore[call-arg]


def options_keep_the_arguments_typed() -> None:
    later = bare.using(priority=5, run_after=datetime.now(UTC), unique_key="a", headers={"trace": "b"})
    later.new(1, lang="fr")
    later.new("1")  # type: ignore[arg-type]
    with_context.using(run_after=timedelta(hours=1)).new(1)
    with_context.using(queue="x").new(order="1")  # type: ignore[call-arg]
    bare.using(prioriti=5)  # type: ignore[call-arg]
    bare.using(unique_until="never")  # type: ignore[arg-type]
    bare.using(on_duplicate="drop")  # type: ignore[arg-type]


def direct_calls() -> None:
    assert_type(with_settings(1, Decimal(2)), str)
    answer: Coroutine[Any, Any, int] = async_bare(1)
    answer.close()
    with_settings(1)  # type: ignore[call-arg]


def definitions() -> None:
    assert_type(queue.named("elsewhere"), TaskDefinition[..., Any])
    queue.named("elsewhere").new(anything=1)


@dataclass(frozen=True)
class OrderRef:
    order_id: int
    lang: str = "en"


@queue.task(batch=100, item=OrderRef, max_wait=0.5)
def typed_range(context: BatchContext, items: list[OrderRef]) -> None:
    with context.savepoint(items[0]):
        context.session.commit()


@queue.task(batch=100, item=OrderRef)
async def async_range(items: list[OrderRef]) -> dict[OrderRef, Retry]:
    return {item: Retry() for item in items}


@queue.task(batch=100)
def untyped_range(context: BatchContext, items: list[OrderRef]) -> None: ...


typed_range.new(order_id=1)
typed_range.new(1, lang="fr")
typed_range.new("1")  # type: ignore[arg-type]
typed_range.new()  # type: ignore[call-arg]
async_range.using(priority=1).new(order=1)  # type: ignore[call-arg]
assert_type(untyped_range, TaskDefinition[..., None])


@queue.task(batch=100, item=OrderRef)  # type: ignore[arg-type]
def range_of_other_items(context: BatchContext, items: list[int]) -> None: ...
