"""Registering range handlers, enqueueing their items, and what their answers say."""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from sa_taskqueue import BatchContext, Cancel, Fail, TaskContext, TaskQueue, new_id
from sa_taskqueue.exceptions import (
    InvalidArguments,
    InvalidHandler,
    InvalidOutcomes,
    InvalidSetting,
    UndecodableTask,
    UnknownItem,
)
from sa_taskqueue.items import Items
from tests.models import Order, Task


@dataclass
class Ref:
    order_id: int
    token: UUID | None = None
    tags: list[str] = field(default_factory=list)


class Struct(msgspec.Struct):
    order_id: int


class Model(pydantic.BaseModel):
    order_id: int


@dataclass
class Hidden:
    order_id: InitVar[int]


@pytest.fixture
def queue() -> TaskQueue:
    return TaskQueue(Task)


def test_a_task_holds_the_fields_of_one_item(queue: TaskQueue) -> None:
    @queue.task(batch=10)
    def index(items: list[Ref]) -> None: ...

    token = new_id()
    body = index.new(order_id=1, token=token).body
    assert json.loads(body) == {"order_id": 1, "token": str(token)}
    assert queue.handlers["index"].decode_item(body) == Ref(1, token)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "wrong", [{}, {"order_id": "x"}, {"order_id": 1, "order": 2}, {"order_id": 1, "token": "no uuid"}]
)
def test_wrong_fields_are_refused_at_enqueue(queue: TaskQueue, wrong: dict[str, Any]) -> None:
    @queue.task(batch=10)
    def index(items: list[Ref]) -> None: ...

    with pytest.raises(InvalidArguments):
        index.new(**wrong)


@pytest.mark.parametrize("kind", [Struct, Model])
def test_items_may_be_models_of_msgspec_and_pydantic(queue: TaskQueue, kind: Any) -> None:
    def index(items: list[Any]) -> None: ...

    definition: Any = queue.task(batch=10, item=kind)(index)
    assert definition.decode_item(definition.new(order_id=1).body) == kind(order_id=1)
    with pytest.raises(InvalidArguments):
        definition.new(order_id="x")
    with pytest.raises(UndecodableTask):
        definition.decode_item('{"order_id": "x"}')


@pytest.mark.parametrize("body", ["[]", "{}", '{"order_id": null}', '{"order_id": 1, "more": 2}', "nonsense"])
def test_a_body_that_is_no_item_is_undecodable(queue: TaskQueue, body: str) -> None:
    def index(items: list[Ref]) -> None: ...

    definition: Any = queue.task(batch=10)(index)
    with pytest.raises(UndecodableTask):
        definition.decode_item(body)


def test_called_directly_it_runs_with_a_list_of_one(queue: TaskQueue) -> None:
    def index(items: list[Ref]) -> list[Ref]:
        return items

    definition: Any = queue.task(batch=10)(index)
    assert definition(order_id=1) == [Ref(1)]


@pytest.mark.parametrize("batch", [0, -1, 1001, True, 1.5, "10", None])
def test_a_batch_of_no_size_is_refused(queue: TaskQueue, batch: Any) -> None:
    def index(items: list[Ref]) -> None: ...

    if batch is None:
        with pytest.raises(InvalidSetting, match="batch="):
            queue.task(item=Ref)(index)  # type: ignore[call-overload]
        with pytest.raises(InvalidSetting, match="batch="):
            queue.task(max_wait=1)(index)  # type: ignore[call-overload]
    else:
        with pytest.raises(InvalidSetting, match="1 to 1,000"):
            queue.task(batch=batch)(index)


@pytest.mark.parametrize("wait", [-1, "1", timedelta(seconds=-1), float("nan")])
def test_a_wait_that_is_no_time_is_refused(queue: TaskQueue, wait: Any) -> None:
    def index(items: list[Ref]) -> None: ...

    with pytest.raises(InvalidSetting, match="max_wait"):
        queue.task(batch=10, max_wait=wait)(index)


def _of_numbers(items: list[int]) -> None: ...
def _of_orders(items: list[Order]) -> None: ...
def _of_hidden(items: list[Hidden]) -> None: ...
def _no_list(items: Ref) -> None: ...
def _not_annotated(items) -> None: ...  # type: ignore[no-untyped-def]
def _two_lists(items: list[Ref], others: list[Ref]) -> None: ...
def _none_at_all() -> None: ...
def _by_keyword(*, items: list[Ref]) -> None: ...
def _single_context(context: TaskContext, items: list[Ref]) -> None: ...
def _unknown_type(items: list[Later]) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "handler",
    [
        _of_numbers,
        _of_orders,
        _of_hidden,
        _no_list,
        _not_annotated,
        _two_lists,
        _none_at_all,
        _by_keyword,
        _single_context,
        _unknown_type,
    ],
)
def test_a_wrong_signature_is_refused_where_it_is_written(queue: TaskQueue, handler: Any) -> None:
    with pytest.raises(InvalidHandler):
        queue.task(batch=10)(handler)


def test_a_batch_context_needs_a_batch(queue: TaskQueue) -> None:
    with pytest.raises(InvalidHandler, match="context"):

        @queue.task
        def index(context: BatchContext, order_id: int) -> None: ...


def test_answers() -> None:
    ids = [new_id(), new_id(), new_id()]
    items = Items("index", ["a", "b", "b"], ids)
    failed, cancelled = Fail(), Cancel()
    assert items.outcomes(None) == [None, None, None]
    assert items.outcomes(failed) == [failed] * 3
    assert items.outcomes([failed, None, cancelled]) == [failed, None, cancelled]
    assert items.outcomes({"b": failed}) == [None, failed, failed]
    assert items.outcomes({ids[2]: failed, "a": cancelled}) == [cancelled, None, failed]


@pytest.mark.parametrize("answer", [5, "abc", [None], [None] * 4, object()])
def test_an_answer_that_fits_no_batch_is_refused(answer: object) -> None:
    with pytest.raises(InvalidOutcomes):
        Items("index", ["a", "b", "c"], [new_id() for _ in range(3)]).outcomes(answer)


@pytest.mark.parametrize("key", ["z", new_id(), 5])
def test_an_outcome_for_an_unknown_item_is_refused(key: object) -> None:
    with pytest.raises(UnknownItem):
        Items("index", ["a"], [new_id()]).outcomes({key: Fail()})


def test_items_that_are_equal_are_told_apart_as_objects() -> None:
    first, second = Ref(1), Ref(1)
    items = Items("index", [first, second], [new_id(), new_id()])
    assert (items.index(first), items.index(second)) == (0, 1)
    with pytest.raises(UnknownItem):
        items.index(Ref(2))
