"""Conversions of single values, and what is raised where one does not fit."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

Converter = Callable[[Any], Any]


class Mismatch(ValueError):
    """A value does not fit its annotation; ``path`` leads to it and the value itself is never quoted."""

    def __init__(self, expected: str, path: str = "") -> None:
        super().__init__(expected, path)
        self.expected = expected
        self.path = path

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.') or 'the value'} must be {self.expected}"

    def inside(self, step: str) -> Mismatch:
        return Mismatch(self.expected, step + self.path)


def as_is(value: Any) -> Any:
    return value


def exactly(kind: type, expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is not kind:
            raise Mismatch(expected)
        return value

    return convert


def _to_int(value: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():  # JavaScript and JSONB do not tell 5 from 5.0
        return int(value)
    raise Mismatch("a whole number")


def _to_float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            pass
    raise Mismatch("a number")


def _to_decimal(value: Any) -> Decimal:
    if type(value) in (str, int, float):
        try:
            number = Decimal(str(value))
        except (InvalidOperation, ValueError):
            raise Mismatch("a decimal number") from None
        if number.is_finite():
            return number
    raise Mismatch("a decimal number")


def _to_datetime(value: Any) -> datetime:
    if type(value) is str:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise Mismatch("a datetime in ISO 8601") from None
        if moment.utcoffset() is not None:
            return moment
    raise Mismatch("a datetime in ISO 8601 with a time zone")


def _to_date(value: Any) -> date:
    try:
        if type(value) is str:
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise Mismatch("a date in ISO 8601")


def _to_uuid(value: Any) -> UUID:
    try:
        if type(value) is str:
            return UUID(value)
    except ValueError:
        pass
    raise Mismatch("a UUID")


def _to_bytes(value: Any) -> bytes:
    try:
        if type(value) is str:
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise Mismatch("bytes in base64")


_to_none = exactly(type(None), "null")

# What JSON itself tells apart; anything else is made from one of these.
PLAIN: Mapping[object, Converter] = {
    str: exactly(str, "text"),
    bool: exactly(bool, "true or false"),
    int: _to_int,
    float: _to_float,
    None: _to_none,
    type(None): _to_none,
}
RICH: Mapping[object, Converter] = {
    Any: as_is,
    object: as_is,
    datetime: _to_datetime,
    date: _to_date,
    Decimal: _to_decimal,
    UUID: _to_uuid,
    bytes: _to_bytes,
}
