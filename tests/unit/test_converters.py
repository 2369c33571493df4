from __future__ import annotations

import collections.abc
import enum
import functools
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pytest

from sa_taskqueue.converters import UnsupportedAnnotation, converter_for
from sa_taskqueue.scalars import Mismatch
from tests.models import Order

OrderId = NewType("OrderId", int)
T = TypeVar("T")
Bounded = TypeVar("Bounded", bound=date)


class Size(enum.StrEnum):
    SMALL = "s"


@dataclass
class Tree:
    name: str
    children: list[Tree]
    parent: Tree | None = None


@dataclass
class Price:
    amount: Decimal

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise LookupError("no such price")


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


@pytest.mark.parametrize(
    ("annotation", "given", "expected"),
    [
        (list[date], ["2026-01-02"], [date(2026, 1, 2)]),
        (list, [1], [1]),
        (collections.abc.Sequence[UUID], [str(UUID(int=1))], [UUID(int=1)]),
        (dict[str, Decimal], {"a": "1.5"}, {"a": Decimal("1.5")}),
        (collections.abc.Mapping[str, int], {"a": 1}, {"a": 1}),
        (dict[Size, int], {"s": 1}, {Size.SMALL: 1}),
        (dict, {"a": 1}, {"a": 1}),
        (tuple[int, date], [1, "2026-01-02"], (1, date(2026, 1, 2))),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (tuple, [1], (1,)),
        (date | None, None, None),
        (date | None, "2026-01-02", date(2026, 1, 2)),
        (int | str, "1", "1"),
        (int | str | None, None, None),
        (UUID | str, str(UUID(int=1)), UUID(int=1)),
        (UUID | str, "abc", "abc"),
        (date | datetime, "2026-01-02", date(2026, 1, 2)),
        (datetime | date, "2026-01-02", date(2026, 1, 2)),
        (date | datetime, "2026-01-02T00:00:00Z", datetime(2026, 1, 2, tzinfo=UTC)),
        (int | float, 5, 5),
        (float | int, 5, 5),
        (list[int] | int, [1], [1]),
        (Price | Tree, {"name": "a", "children": []}, Tree("a", [])),
        (Literal["a", 1], 1, 1),
        (Literal[Size.SMALL], "s", Size.SMALL),
        (Annotated[date, "due"], "2026-01-02", date(2026, 1, 2)),
        (OrderId, 5, 5),
        (T, [1], [1]),
        (Bounded, "2026-01-02", date(2026, 1, 2)),
        (Any, {"a": 1}, {"a": 1}),
        (object, "x", "x"),
        (None, None, None),
        (Movie, {"title": "x"}, {"title": "x"}),
        (Movie, {"title": "x", "year": 1}, {"title": "x", "year": 1}),
    ],
)
def test_json_becomes_the_annotated_type(annotation: object, given: object, expected: object) -> None:
    converted = converter_for(annotation)(given)
    assert converted == expected
    assert type(converted) is type(expected)


def test_a_dataclass_may_hold_itself() -> None:
    given = {"name": "a", "children": [{"name": "b", "children": [], "parent": None}]}
    assert converter_for(Tree)(given) == Tree("a", [Tree("b", [])])


@pytest.mark.parametrize(
    ("annotation", "given", "message"),
    [
        (int, "5", "the value must be a whole number"),
        (int, True, "whole number"),
        (int, 5.5, "whole number"),
        (float, "1", "a number"),
        (float, 10**400, "a number"),
        (str, 5, "text"),
        (bool, 1, "true or false"),
        (date, "2026-13-01", "a date"),
        (date, 5, "a date"),
        (datetime, "2026-01-02T00:00:00", "with a time zone"),
        (datetime, "yesterday", "a datetime"),
        (Decimal, "NaN", "a decimal number"),
        (Decimal, True, "a decimal number"),
        (UUID, "x", "a UUID"),
        (bytes, "é", "bytes in base64"),
        (Size, "xl", "a value of Size"),
        (list[int], {"a": 1}, "a list"),
        (list[date], ["2026-01-02", "x"], r"\[1\] must be a date"),
        (dict[str, list[int]], {"a": [1, "x"]}, r"a\[1\] must be a whole number"),
        (tuple[int, int], [1], "a list of 2 items"),
        (Literal["a"], "b", "one of 'a'"),
        (int | date, "x", "one of int, date"),
        (date | None, "x", "a date"),
        (Tree, {"name": "a"}, "children must be there"),
        (Tree, {"name": "a", "children": [{"name": 5, "children": []}]}, r"children\[0\]\.name must be text"),
        (Tree, {"name": "a", "children": [], "age": 1}, "age must be left out"),
        (Tree, "a", "an object with the fields of Tree"),
        (Movie, {"title": "x", "studio": "y"}, "studio must be left out"),
    ],
)
def test_a_misfit_says_where_and_what_was_expected(annotation: object, given: object, message: str) -> None:
    with pytest.raises(Mismatch, match=message):
        converter_for(annotation)(given)


def test_what_a_dataclass_itself_refuses_comes_through() -> None:
    with pytest.raises(LookupError, match="no such price"):
        converter_for(Price)({"amount": "-1"})


@pytest.mark.parametrize(
    "annotation",
    [
        Order,
        object(),
        set[int],
        frozenset,
        dict[int, str],
        dict[UUID, str],
        functools.partial,
        type,
        complex,
        list[Order],
    ],
)
def test_an_annotation_that_json_cannot_become_is_refused_at_once(annotation: object) -> None:
    with pytest.raises(UnsupportedAnnotation):
        converter_for(annotation)


def test_msgspec_structs_come_back() -> None:
    msgspec = pytest.importorskip("msgspec")
    kind = msgspec.defstruct("Item", [("sku", str), ("due", date), ("price", Decimal)])
    item = kind(sku="a", due=date(2026, 1, 2), price=Decimal("1.5"))
    from sa_taskqueue import codec

    assert codec.decode(
        codec.encode({"a": [item]}),
        dict[str, list[kind]],  # type: ignore[valid-type]
    ) == {"a": [item]}
    with pytest.raises(Mismatch, match="what Item accepts"):
        converter_for(kind)({"sku": 5})


def test_pydantic_models_come_back() -> None:
    pydantic = pytest.importorskip("pydantic")
    kind = pydantic.create_model(
        "Item", sku=(str, pydantic.Field(alias="SKU")), due=date, prices=tuple[Decimal, ...], tags=set[str], blob=bytes
    )
    item = kind(SKU="a", due=date(2026, 1, 2), prices=(Decimal("1.5"),), tags={"x"}, blob=b"abc")
    from sa_taskqueue import codec

    assert codec.decode(codec.encode(item), kind) == item
    assert codec.decode(
        codec.encode([item]),
        list[kind] | None,  # type: ignore[valid-type]
    ) == [item]
    with pytest.raises(Mismatch, match="what Item accepts"):
        converter_for(kind)({"SKU": "a"})


def test_a_model_that_cannot_be_dumped_is_refused_with_its_path() -> None:
    msgspec = pytest.importorskip("msgspec")
    from sa_taskqueue import codec
    from sa_taskqueue.exceptions import BodyNotSerializable

    kind = msgspec.defstruct("Odd", [("value", Any)])
    with pytest.raises(BodyNotSerializable) as caught:
        codec.encode({"a": kind(value=object())})
    assert caught.value.path == "$.a"
