from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import pytest

from sa_taskqueue import TaskContext, TaskQueue
from sa_taskqueue.exceptions import BodyNotSerializable, InvalidArguments, InvalidHandler, UndecodableTask
from tests.models import Order, Task

if TYPE_CHECKING:
    from fractions import Fraction

    import sa_taskqueue


@dataclass
class Address:
    street: str
    since: date | None = None


class MyContext(TaskContext):
    pass


class Calls:
    def method(self, a: int) -> None: ...

    def __call__(self, a: int, when: datetime) -> None: ...


def plain(order_id: int, *, lang: str = "en") -> None: ...


def rich(when: datetime, price: Decimal, to: Address, note: str | None) -> None: ...


def positional_only(a: int, b: str = "x", /, c: int = 1) -> None: ...


def with_rest(a: int, *rest: date, **others: Decimal) -> None: ...


def with_context(context: TaskContext, a: int) -> None: ...


def with_hidden_context(context: sa_taskqueue.TaskContext, a: int) -> Fraction: ...  # type: ignore[empty-body]


def with_own_context(ctx: MyContext, a: int) -> None: ...


def without_annotations(a, b=None): ...  # type: ignore[no-untyped-def]


def implicitly_optional(a: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013 - older code does so


def of_a_later_class(item: Later) -> None: ...


@dataclass
class Later:
    a: int


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return wrapper


def body_of(function: Callable[..., object], /, *args: Any, **kwargs: Any) -> Any:
    return json.loads(TaskQueue(Task).task(function).new(*args, **kwargs).body)


def round_trip(function: Callable[..., object], /, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    task = TaskQueue(Task).task(name="it")(function)
    return task.decode(task.new(*args, **kwargs).body)


def test_the_body_is_keyed_by_parameter_name_however_the_arguments_were_given() -> None:
    assert body_of(plain, 5, lang="fr") == body_of(plain, order_id=5, lang="fr") == {"order_id": 5, "lang": "fr"}


def test_a_default_is_left_to_the_worker() -> None:
    assert body_of(plain, 5) == {"order_id": 5}


def test_arguments_come_back_as_annotated() -> None:
    given = {"when": datetime.now(UTC), "price": Decimal("1.5"), "to": Address("x", date(2026, 1, 2)), "note": None}
    assert round_trip(rich, **given) == ((), given)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'order_id'"),
        ((1, 2), {}, "too many positional arguments"),
        ((1,), {"order_id": 2}, "multiple values for argument 'order_id'"),
        ((1,), {"language": "fr"}, r"no parameter language; did you mean lang\?"),
    ],
)
def test_wrong_arguments_are_type_errors_at_once(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    task = TaskQueue(Task).task(plain)
    with pytest.raises(TypeError, match=message) as caught:
        task.new(*args, **kwargs)
    assert isinstance(caught.value, InvalidArguments)
    assert "plain" in str(caught.value)


def test_none_for_a_parameter_that_cannot_be_none_says_flush_first() -> None:
    with pytest.raises(InvalidArguments, match=r"order_id is None.*flush first"):
        TaskQueue(Task).task(plain).new(order_id=Order().id)


def test_none_is_taken_where_the_annotation_or_its_absence_allows_it() -> None:
    assert body_of(rich, datetime.now(UTC), Decimal(1), Address("x"), None)["note"] is None
    assert body_of(without_annotations, None) == {"a": None}
    assert round_trip(implicitly_optional, None) == ((), {"a": None})


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "called"),
    [
        (positional_only, (1,), {}, ((1, "x"), {})),
        (positional_only, (1, "y"), {"c": 2}, ((1, "y"), {"c": 2})),
        (with_rest, (1, date(2026, 1, 2)), {"x": Decimal(1)}, ((1, date(2026, 1, 2)), {"x": Decimal(1)})),
        (with_rest, (), {"a": 1}, ((1,), {})),
        (without_annotations, (1, [2]), {}, ((), {"a": 1, "b": [2]})),
        (Calls().method, (1,), {}, ((), {"a": 1})),
        (Calls(), (1, datetime(2026, 1, 2, tzinfo=UTC)), {}, ((), {"a": 1, "when": datetime(2026, 1, 2, tzinfo=UTC)})),
        (functools.partial(plain, lang="fr"), (1,), {}, ((), {"order_id": 1})),
        (decorated(plain), (1,), {}, ((), {"order_id": 1})),
    ],
)
def test_every_kind_of_parameter_and_callable_works(
    function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any], called: object
) -> None:
    assert round_trip(function, *args, **kwargs) == called


def test_any_name_may_be_a_parameter_and_any_annotation_annotated() -> None:
    def odd(self: Annotated[int, ["unhashable"]], task: int, session: int, using: int) -> None: ...

    given = {"self": 1, "task": 2, "session": 3, "using": 4}
    assert round_trip(odd, **given) == ((), given)


def test_two_arguments_under_one_name_are_refused() -> None:
    def same(a: int, /, **others: int) -> None: ...

    with pytest.raises(InvalidArguments, match="under one name"):
        TaskQueue(Task).task(same).new(1, a=2)


@pytest.mark.parametrize("function", [with_context, with_hidden_context, with_own_context])
def test_a_first_parameter_annotated_task_context_is_not_an_argument(function: Callable[..., object]) -> None:
    task = TaskQueue(Task).task(function)
    assert task.takes_context
    assert json.loads(task.new(a=1).body) == {"a": 1}
    with pytest.raises(InvalidArguments):
        task.new(object(), 1)


def test_an_argument_that_is_not_json_is_refused_with_its_path() -> None:
    with pytest.raises(BodyNotSerializable) as caught:
        TaskQueue(Task).task(without_annotations).new({"x": [object()]})
    assert caught.value.path == "$.a.x[0]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[1]", "an object keyed by parameter name"),
        ("null", "an object keyed by parameter name"),
        ("{", "Expecting property name"),
        ('{"order_id": NaN}', "NaN is not JSON"),
        ("{}", "order_id must be there"),
        ('{"order_id": "5"}', "order_id must be a whole number"),
        ('{"order_id": null}', "order_id must be a whole number"),
        ('{"order_id": 5, "lang": 3}', "lang must be text"),
        ('{"order_id": 5, "colour": "red"}', "colour must be left out"),
        ('{"order_id": ' + "[" * 100_000, "nested too deep"),
    ],
)
def test_a_body_that_does_not_fit_the_handler_is_undecodable(body: str, message: str) -> None:
    with pytest.raises(UndecodableTask, match=message):
        TaskQueue(Task).task(plain).decode(body)


def test_a_body_that_a_class_of_the_user_refuses_is_undecodable() -> None:
    @dataclass
    class Odd:
        a: int

        def __post_init__(self) -> None:
            raise Unspeakable

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text either")

    def handler(odd) -> None: ...  # type: ignore[no-untyped-def]

    handler.__annotations__["odd"] = Odd
    with pytest.raises(UndecodableTask, match="Unspeakable: no text"):
        TaskQueue(Task).task(handler).decode('{"odd": {"a": 1}}')


def test_an_annotation_may_name_what_is_defined_later() -> None:
    assert round_trip(of_a_later_class, Later(1)) == ((), {"item": Later(1)})


def test_an_annotation_that_json_cannot_become_is_refused_where_the_handler_is_defined() -> None:
    def takes_an_order(order: Order) -> None: ...

    with pytest.raises(InvalidHandler, match="parameter order: Order is a mapped class; take the key of its row"):
        TaskQueue(Task).task(takes_an_order)


def test_an_annotation_that_cannot_be_resolved_is_a_named_error_at_the_first_use() -> None:
    def of_a_hidden_class(ratio: Fraction) -> None: ...

    queue = TaskQueue(Task)
    task = queue.task(of_a_hidden_class)
    for use in (lambda: task.new(1), lambda: task.decode('{"ratio": 1}'), queue.prepare):  # type: ignore[arg-type]
        with pytest.raises(InvalidHandler, match="name 'Fraction' is not defined"):
            use()


class Colour(Enum):
    RED = "red"


def task_of(annotation: Any) -> Any:
    def of_one(a): ...  # type: ignore[no-untyped-def]

    of_one.__annotations__["a"] = annotation
    return TaskQueue(Task).task(of_one)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, "secret", "a whole number"),
        (int, True, "a whole number"),
        (int | None, "secret", "one of int, null"),
        (Annotated[int, "positive"], 1.5, "a whole number"),
        (float, "secret", "a number"),
        (str, 7, "text"),
        (bool, 1, "true or false"),
        (bytes, 7, "bytes"),
        (UUID, "secret", "a UUID"),
        (datetime, date(2026, 1, 1), "a datetime"),
        (date, datetime(2026, 1, 1, tzinfo=UTC), "a date"),
        (Decimal, "secret", "a decimal number"),
        (Colour, "blue", "a value of Colour"),
        (Address, "secret", "an object"),
        (list[int], "secret", "a list"),
        (Literal["a", "b"], 7, "one of 'a', 'b'"),
    ],
)
def test_an_argument_the_worker_could_not_read_is_refused_by_type_not_value(
    annotation: Any, value: Any, expected: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        task_of(annotation).new(value)
    reason = caught.value.reason
    assert reason.startswith(f"a must be {expected}")
    assert reason.endswith(f"but is of the type {type(value).__qualname__}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value", "decoded"),
    [
        (float, 1, 1.0),
        (int, 5.0, 5),
        (UUID, "0193a3b0-0000-7000-8000-000000000000", UUID("0193a3b0-0000-7000-8000-000000000000")),
        (date, "2026-01-01", date(2026, 1, 1)),
        (Decimal, 3, Decimal(3)),
        (Colour, "red", Colour.RED),
        (Address, {"street": "a"}, Address("a")),
        (list[int], (1, 2), [1, 2]),
        (int | None, None, None),
    ],
)
def test_an_argument_the_worker_can_read_as_the_annotated_type_is_taken(
    annotation: Any, value: Any, decoded: Any
) -> None:
    task = task_of(annotation)
    assert task.decode(task.new(value).body) == ((), {"a": decoded})


def test_what_cannot_be_stored_is_named_by_its_path_whatever_its_annotation() -> None:
    with pytest.raises(BodyNotSerializable, match=r"\$\.a "):
        task_of(int).new(object())
