from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from sa_taskqueue import codec
from sa_taskqueue.exceptions import (
    BodyError,
    BodyInvalid,
    BodyNotSerializable,
    BodyTooDeep,
    BodyTooLarge,
    NaiveDatetime,
)
from tests.models import Order


class Colour(enum.Enum):
    RED = "red"
    BLUE = (0, 0, 255)
    GREY = Decimal("0.5")


class Level(enum.IntEnum):
    LOW = 1


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@dataclass
class Line:
    sku: str
    price: Decimal
    tags: list[str] = field(default_factory=list)
    total: Decimal = field(init=False, default=Decimal(0))


class Point(NamedTuple):
    x: int
    y: float


def test_plain_json_is_stored_compactly_and_readably() -> None:
    assert codec.encode({"a": [1, 2.5, None, True], "é": "😀"}) == '{"a":[1,2.5,null,true],"é":"😀"}'


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), '"2026-01-02T03:04:05.000006+00:00"'),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))), '"2026-01-02T00:00:00+02:00"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (Decimal("2328.60"), '"2328.60"'),
        (UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        (b"\x00\xff", '"AP8="'),
        (Colour.RED, '"red"'),
        (Colour.BLUE, "[0,0,255]"),
        (Level.LOW, "1"),
        (Line("a", Decimal("1.50")), '{"sku":"a","price":"1.50","tags":[]}'),
        ((1, 2), "[1,2]"),
        (Point(1, 2.0), "[1,2.0]"),
        (OrderedDict(a=(1,)), '{"a":[1]}'),
        ("\\u0000", '"\\\\u0000"'),
    ],
)
def test_richer_values_have_one_stored_form(value: object, stored: str) -> None:
    assert codec.encode(value) == stored


@pytest.mark.parametrize(
    "value",
    [2**70, -(2**200), 10**4000, "emoji 😀", 'quote " and \\ and \n', -0.0, 5e-324, 1.7976931348623157e308, ""],
)
def test_numbers_and_texts_come_back_as_they_were(value: object) -> None:
    decoded = codec.decode(codec.encode([value]))[0]
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(
    ("value", "kind", "path"),
    [
        ({"a": [1, 2, 3, object()]}, BodyNotSerializable, "$.a[3]"),
        ({"a": {1, 2}}, BodyNotSerializable, "$.a"),
        ({"a": bytearray(b"x")}, BodyNotSerializable, "$.a"),
        ({"a": lambda: None}, BodyNotSerializable, "$.a"),
        ({"a": Line}, BodyNotSerializable, "$.a"),
        ([1.0, math.nan], BodyNotSerializable, "$[1]"),
        ([math.inf], BodyNotSerializable, "$[0]"),
        ([Decimal("sNaN")], BodyNotSerializable, "$[0]"),
        ([Decimal("NaN")], BodyNotSerializable, "$[0]"),
        ([Decimal("-Infinity")], BodyNotSerializable, "$[0]"),
        ({"a": {1: "x"}}, BodyNotSerializable, "$.a"),
        ({"a": {None: "x"}}, BodyNotSerializable, "$.a"),
        ({"a": {True: "x"}}, BodyNotSerializable, "$.a"),
        ({"a": 10**5000}, BodyNotSerializable, "$.a"),
        ({"a": Order(id=1)}, BodyNotSerializable, "$.a"),
        ({"a": "x\0y"}, BodyInvalid, "$.a"),
        ({"a\0": "x"}, BodyInvalid, "$"),
        ({"a": ["\ud800"]}, BodyInvalid, "$.a[0]"),
        ({"\udfff": 1}, BodyInvalid, "$"),
        ({"when": Line("\0", Decimal(1))}, BodyInvalid, "$.when.sku"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_found(value: object, kind: type[BodyError], path: str) -> None:
    with pytest.raises(kind) as caught:
        codec.encode(value)
    assert caught.value.fields["path"] == path


def test_a_refusal_never_quotes_the_value() -> None:
    with pytest.raises(BodyInvalid) as caught:
        codec.encode({"password": "secret\0"})
    assert "secret" not in str(caught.value)


def test_a_mapped_object_is_refused_with_the_advice_to_pass_its_key() -> None:
    with pytest.raises(BodyNotSerializable, match="pass its key instead"):
        codec.encode({"order": Order(id=1)})


def test_a_datetime_without_a_time_zone_is_refused() -> None:
    with pytest.raises(NaiveDatetime, match=r"\$\.when"):
        codec.encode({"when": datetime(2026, 1, 2)})  # noqa: DTZ001 - that is the case


def _nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_sixty_four_levels_are_the_most() -> None:
    assert codec.decode(codec.encode(_nested(64))) == _nested(64)
    with pytest.raises(BodyTooDeep):
        codec.encode(_nested(65))
    with pytest.raises(BodyTooDeep):
        codec.encode(_nested(20_000))


def test_a_value_that_holds_itself_is_too_deep() -> None:
    loop: dict[str, object] = {}
    loop.update(a=loop, b=loop)
    with pytest.raises(BodyTooDeep):
        codec.encode(loop)


def test_the_size_limit_is_in_bytes_of_utf8() -> None:
    assert len(codec.encode("x" * 98, limit=100)) == 100
    with pytest.raises(BodyTooLarge) as caught:
        codec.encode("é" * 50, limit=100)
    assert (caught.value.size, caught.value.limit) == (102, 100)


def test_the_default_limit_is_256_kib() -> None:
    codec.encode("x" * (256 * 1024 - 2))
    with pytest.raises(BodyTooLarge):
        codec.encode("x" * (256 * 1024 - 1))


@pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", "[1] x", "[" * 100_000, "9" * 5_000, "'a'"])
def test_text_that_is_not_strict_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its text is Python's
        codec.decode_json(text)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 6, timezone(timedelta(hours=-5))), datetime),
        (date(2026, 1, 2), date),
        (Decimal("1e-20"), Decimal),
        (Decimal("1e400"), Decimal),
        (UUID(int=2**100), UUID),
        (b"\x00\xff", bytes),
        (Colour.BLUE, Colour),
        (Colour.GREY, Colour),
        (Level.LOW, Level),
        (Access.READ | Access.WRITE, Access),
        (Line("a", Decimal("1.50"), ["x"]), Line),
        (Point(1, 2.0), Point),
    ],
)
def test_annotated_values_come_back_as_their_type(value: object, annotation: object) -> None:
    decoded = codec.decode(codec.encode(value), annotation)
    assert decoded == value
    assert type(decoded) is type(value)


def test_a_body_from_another_language_is_read_by_the_annotation() -> None:
    assert codec.decode("5.0", int) == 5
    assert codec.decode("5", float) == 5.0
    assert type(codec.decode("5", float)) is float
    assert codec.decode("12.5", Decimal) == Decimal("12.5")
    assert codec.decode('"2026-01-02T03:04:05Z"', datetime) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_without_an_annotation_json_is_left_as_it_is() -> None:
    assert codec.decode('{"a":[1,"2026-01-02"]}', Any) == {"a": [1, "2026-01-02"]}


def test_encoding_leaves_the_value_untouched() -> None:
    value = {"a": [Decimal(1), (1, 2)]}
    codec.encode(value)
    assert value == {"a": [Decimal(1), (1, 2)]}


def test_the_stored_text_is_json_for_every_reader() -> None:
    assert json.loads(codec.encode({"a": Line("x", Decimal(2))})) == {"a": {"sku": "x", "price": "2", "tags": []}}
