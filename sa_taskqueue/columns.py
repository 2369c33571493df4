"""Arguments that are columns: checked against the handler before SQL, and made into a JSON object by SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ColumnElement, Dialect
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList, Null
from sqlalchemy.types import NullType

from sa_taskqueue import codec
from sa_taskqueue.adapters.derived import Derivation, JsonKind, Member, Unfit, choices_of, held_as, kind_of
from sa_taskqueue.exceptions import InvalidArguments

if TYPE_CHECKING:
    from sa_taskqueue.signatures import Arguments

_SAMPLES: Mapping[JsonKind, tuple[Any, ...]] = {
    # Text may hold anything that is text in JSON; whether it does is seen by the worker.
    JsonKind.TEXT: (
        "x",
        "018f0000-0000-7000-8000-000000000000",
        "1",
        "2026-01-01",
        "2026-01-01T00:00:00+00:00",
        "AAAA",
    ),
    JsonKind.INTEGER: (0, 1),
    JsonKind.FLOAT: (0.5,),
    JsonKind.DECIMAL: ("0.5",),
    JsonKind.BOOLEAN: (True,),
    JsonKind.DATETIME: ("2026-01-01T00:00:00+00:00",),
    JsonKind.DATE: ("2026-01-01",),
    JsonKind.UUID: ("018f0000-0000-7000-8000-000000000000",),
    JsonKind.BYTES: ("AAAA",),
}
"""What is stored for a column of each kind, to ask the handler's annotation whether it fits."""


class ColumnArguments:
    """The arguments of one task, or the members of one payload: columns, expressions and plain values."""

    def __init__(
        self,
        name: str,
        given: Mapping[str, Any],
        *,
        not_null: frozenset[Any],
        certain: bool,
        refusal: Callable[[str], Exception] | None = None,
    ) -> None:
        """``not_null`` are columns that the statement's WHERE says are not NULL.

        ``certain``: a column that cannot be NULL in its table is not NULL here, as no outer join is in between.
        """
        self._refusal = refusal or (lambda reason: InvalidArguments(name=name, reason=reason))
        self._not_null = not_null
        self._certain = certain
        self.columns: dict[str, ColumnElement[Any]] = {}
        self.plain: dict[str, Any] = {}
        self._order = list(given)
        for key, value in given.items():
            found = expression_of(value)
            if found is None:
                self.plain[key] = value
            else:
                self.columns[key] = found

    def check(self, arguments: Arguments | None) -> None:
        """Raise InvalidArguments where a parameter is missing, unknown, or of another type than the column."""
        if arguments is not None:
            arguments.check_names(self._order)
            for key, value in self.plain.items():
                arguments.check_value(key, value)
        for key, column in self.columns.items():
            self._check_column(key, column, arguments)
            self._null(key, column, arguments)
        self._plain_json(codec.MAX_BODY)

    def json_object(
        self, arguments: Arguments | None, derivation: Derivation, dialect: Dialect, limit: int
    ) -> ColumnElement[Any]:
        """The object as an expression; the plain values in it are constants."""
        constants = self._plain_json(limit)
        members = [
            Member(key, constants[key])
            if key in constants
            else Member(key, self._value(self.columns[key], derivation, dialect), self._null_of(key, arguments))
            for key in self._order
        ]
        return derivation.json_object(members)

    def _plain_json(self, limit: int) -> dict[str, str]:
        # All at once, so that the limit counts for the whole; apart again for their places among the columns.
        whole = json.loads(codec.encode(self.plain, limit=limit))
        return {key: json.dumps(value, ensure_ascii=False, allow_nan=False) for key, value in whole.items()}

    def _value(self, column: ColumnElement[Any], derivation: Derivation, dialect: Dialect) -> ColumnElement[Any]:
        held = held_as(column.type, dialect)
        if held.kind is JsonKind.CHOICE:
            texts = tuple((stored, codec.encode(value)) for stored, value in choices_of(column.type))
            held = replace(held, choices=texts)
        return derivation.value(column, held)

    def _check_column(self, key: str, column: ColumnElement[Any], arguments: Arguments | None) -> None:
        if isinstance(column.type, NullType):
            raise self._refused(key, "its SQL type is not known; give it one: type_coerce(expression, Integer)")
        try:
            kind = kind_of(column.type)
        except Unfit as reason:
            raise self._refused(key, str(reason)) from None
        if arguments is None or kind is JsonKind.JSON:
            return
        if kind is JsonKind.CHOICE:
            samples: tuple[Any, ...] = tuple(json.loads(codec.encode(value)) for _, value in choices_of(column.type))
        else:
            kinds = {type(sample) for sample in _SAMPLES[kind]}
            listed = arguments.listed_values(key) if kind in (JsonKind.TEXT, JsonKind.INTEGER) else ()
            samples = (*_SAMPLES[kind], *(value for value in listed if type(value) in kinds))
        if not any(arguments.accepts(key, sample) for sample in samples):
            raise self._refused(key, f"its column holds {kind.value}, of which the parameter's type is not made")

    def _null_of(self, key: str, arguments: Arguments | None) -> str:
        return self._null(key, self.columns[key], arguments)

    def _null(self, key: str, column: ColumnElement[Any], arguments: Arguments | None) -> str:
        """What a NULL of the column would be: a value like any other, a failure of the statement, or impossible."""
        if arguments is None or arguments.accepts(key, None):
            return "allowed"
        if not isinstance(column, Column):
            return "refused"
        if column.nullable and _identity(column) not in self._not_null:
            raise self._refused(
                key,
                "the column may be NULL, but the parameter may not be None. Annotate it as optional, or add "
                f".where({column}.is_not(None)), or use func.coalesce",
            )
        return "never" if self._certain and not column.nullable else "refused"

    def _refused(self, key: str, reason: str) -> Exception:
        return self._refusal(f"{key}: {reason}")


def expression_of(value: Any) -> ColumnElement[Any] | None:
    """The SQL expression that a mapped attribute, a column or an expression is; None for a plain value."""
    made = value.__clause_element__() if hasattr(value, "__clause_element__") else value
    return made if isinstance(made, ColumnElement) and not isinstance(made, Null) else None


def columns_not_null(criteria: tuple[Any, ...]) -> frozenset[Any]:
    """The columns of which the WHERE says that they are not NULL."""
    return frozenset(
        _identity(term.left)
        for term in _terms(criteria)
        if isinstance(term, BinaryExpression)
        and term.operator is operators.is_not
        and isinstance(term.right, Null)
        and isinstance(term.left, Column)
    )


def _terms(criteria: tuple[Any, ...]) -> Iterator[Any]:
    for term in criteria:
        if isinstance(term, BooleanClauseList) and term.operator is operators.and_:
            yield from _terms(tuple(term.clauses))
        else:
            yield term


def _identity(column: Column[Any]) -> tuple[str, str]:
    """A column of a mapped attribute is a copy of the table's own."""
    return str(column.table), column.key
