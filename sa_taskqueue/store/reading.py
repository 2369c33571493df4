"""Turns the rows of a claim into `Claimed`, a column at a time, and sets aside what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Dialect, Table, type_coerce
from sqlalchemy.types import Integer, NullType, TypeEngine

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.store.rows import Claimed

Converter = Callable[[Any], Any]
Column = Sequence[Any]
ColumnConverter = Callable[[Column], Column]

UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, LookupError)
_RAW = ("id", "scheduled_at", "created_at", "ready_at")
_FIELDS = len(Claimed._fields)
_CLAIM_ORDER = itemgetter(Claimed._fields.index("priority"), _FIELDS, 0)


def raw(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column as the driver gives it."""
    return type_coerce(column, NullType()).label(column.key)


def converter(type_: TypeEngine[Any], dialect: Dialect) -> Converter | None:
    """What makes the type's Python value from the driver's; None where they are the same."""
    return type_.dialect_impl(dialect).result_processor(dialect, None)


def shown(convert: Converter | None, value: Any) -> Any:
    """The Python value to show to people, None for one that cannot be read: it must not hide the other rows."""
    try:
        return value if convert is None else convert(value)
    except UNREADABLE:
        return None


class Unreadable(NamedTuple):
    """A row that cannot be converted: its id as the driver gave it, and why."""

    raw_id: Any
    reason: str


class ClaimReader:
    """Knows the columns of a claim and how each is converted on each dialect.

    Ids and datetimes are read as the driver gives them and converted here, so that one bad value harms one row only.
    """

    def __init__(self, table: Table, adapter: Adapter) -> None:
        self._table = table
        self._checked = adapter.loose_types
        self._converters: dict[Dialect, list[tuple[int, ColumnConverter]]] = {}

    def columns(self) -> list[ColumnElement[Any]]:
        """The fields of `Claimed`, then ``ready_at`` for the order."""
        return [self._shown(name) for name in (*Claimed._fields, "ready_at")]

    def read(self, dialect: Dialect, rows: Sequence[Any]) -> tuple[list[Claimed], list[Unreadable]]:
        """The tasks in the order of the claim, and what could not be read."""
        converters = self._for(dialect)
        try:
            return _converted(converters, sorted(rows, key=_CLAIM_ORDER)), []
        except UNREADABLE:
            return _one_by_one(converters, rows)

    def _shown(self, name: str) -> ColumnElement[Any]:
        column = self._table.c[name]
        return raw(column) if name in _RAW else column

    def _for(self, dialect: Dialect) -> list[tuple[int, ColumnConverter]]:
        found = self._converters.get(dialect)
        if found is None:
            found = self._converters[dialect] = list(self._build(dialect))
        return found

    def _build(self, dialect: Dialect) -> list[tuple[int, ColumnConverter]]:
        converters: list[tuple[int, ColumnConverter]] = []
        for position, name in enumerate(Claimed._fields):
            type_ = self._table.c[name].type
            if name in _RAW:
                convert = converter(type_, dialect)
                if convert is not None:
                    converters.append((position, _each(convert)))
            elif self._checked:
                kind = int if isinstance(type_, Integer) else str
                converters.append((position, _expecting(name, kind, nullable=bool(self._table.c[name].nullable))))
        return converters


def _converted(converters: list[tuple[int, ColumnConverter]], rows: Sequence[Any]) -> list[Claimed]:
    if not rows:
        return []
    columns: list[Column] = list(zip(*rows, strict=True))
    del columns[_FIELDS:]
    for position, convert in converters:
        columns[position] = convert(columns[position])
    return list(map(Claimed._make, zip(*columns, strict=True)))


def _one_by_one(
    converters: list[tuple[int, ColumnConverter]], rows: Sequence[Any]
) -> tuple[list[Claimed], list[Unreadable]]:
    good: list[tuple[Any, Claimed]] = []
    bad: list[Unreadable] = []
    for row in rows:
        try:
            [claimed] = _converted(converters, [row])
        except UNREADABLE as error:
            bad.append(Unreadable(row[0], f"{type(error).__name__}: {error}"))
        else:
            good.append(((claimed.priority, str(row[_FIELDS]), claimed.id), claimed))
    return [claimed for _, claimed in sorted(good)], bad


def _each(convert: Converter) -> ColumnConverter:
    return lambda column: list(map(convert, column))


def _expecting(name: str, kind: type, *, nullable: bool) -> ColumnConverter:
    expected = {kind, type(None)} if nullable else {kind}

    def check(column: Column) -> Column:
        others = set(map(type, column)) - expected
        if others:
            raise TypeError(f"column {name} holds {others.pop().__name__} where {kind.__name__} belongs")
        return column

    return check
