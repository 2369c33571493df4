"""Values of new rows that the database makes itself: JSON from the columns of other rows, and ids.

A row made so must be read by the worker as if Python had written it, hence one JSON form for each kind of column.
JSON is text in most databases, and built as text here: no number goes through a JSON type that would round it.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Date,
    DateTime,
    Dialect,
    Enum,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    String,
    Text,
    TypeDecorator,
    Uuid,
    bindparam,
    case,
    func,
    literal_column,
    null,
    type_coerce,
)
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.types import BINARY, JSON, VARBINARY, TypeEngine


class JsonKind(enum.Enum):
    """What a column holds, as far as its JSON form depends on it."""

    TEXT = "text"
    INTEGER = "a whole number"
    FLOAT = "a floating-point number"
    DECIMAL = "a decimal number"
    BOOLEAN = "true or false"
    DATETIME = "a moment"
    DATE = "a date"
    UUID = "a UUID"
    BYTES = "bytes"
    CHOICE = "a member of an enum"
    JSON = "JSON"


class UuidForm(enum.Enum):
    """How a database keeps a UUID."""

    NATIVE = "native"
    HEX = "hex"
    """32 characters without dashes."""
    BINARY = "binary"


class Unfit(Exception):
    """A column's type has no JSON form; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Held:
    """How a column holds its values."""

    kind: JsonKind
    uuid_form: UuidForm = UuidForm.NATIVE
    scale: int = 10
    """Digits behind the point of a decimal number, where the database does not keep them."""
    choices: tuple[tuple[str, str], ...] = ()
    """For an enum: each text in the column and the JSON text of what it stands for."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a JSON object: constant JSON text, or an expression from `Derivation.value`.

    ``null`` says what becomes of NULL: it is JSON's null, or the whole object is NULL (then its column refuses the
    row), or it cannot be.
    """

    name: str
    value: ColumnElement[Any] | str
    null: str = "allowed"  # or "refused", "never"


def kind_of(type_: TypeEngine[Any]) -> JsonKind:
    """What a column of the type holds; Unfit if it has no JSON form."""
    declared = getattr(type_, "json_kind", None)
    if isinstance(declared, JsonKind):
        return declared
    if isinstance(type_, TypeDecorator):
        if _converts(type_):
            raise Unfit(
                f"{type(type_).__name__} converts its values in Python, which SQL cannot do; say what the database "
                "holds: type_coerce(column, String)"
            )
        return kind_of(type_.impl_instance)
    for base, kind in _KINDS:
        if isinstance(type_, base):
            return _checked(type_, kind)
    raise Unfit(f"no argument can be made of the type {type(type_).__name__}; convert it: cast(column, String)")


def held_as(type_: TypeEngine[Any], dialect: Dialect) -> Held:
    """How the database of this dialect holds a column of the type; Unfit if it has no JSON form."""
    kind = kind_of(type_)
    if kind is JsonKind.UUID:
        return Held(kind, uuid_form=_uuid_form(type_, dialect))
    inner = _undecorated(type_)
    if kind is JsonKind.DECIMAL and isinstance(inner, Numeric):
        return Held(kind, scale=inner._effective_decimal_return_scale or 0)  # noqa: SLF001
    return Held(kind)


def choices_of(type_: TypeEngine[Any]) -> tuple[tuple[str, object], ...]:
    """The texts of an enum's column, each with the object that Python makes of it."""
    inner = _undecorated(type_)
    if not isinstance(inner, Enum):
        return ()
    read = inner.result_processor(DefaultDialect(), None)  # type: ignore[no-untyped-call]
    return tuple((text, read(text) if read else text) for text in inner.enums)


def _undecorated(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    return _undecorated(type_.impl_instance) if isinstance(type_, TypeDecorator) else type_


def _converts(type_: TypeDecorator[Any]) -> bool:
    names = ("process_bind_param", "process_result_value", "bind_processor", "result_processor")
    return any(getattr(type(type_), name) is not getattr(TypeDecorator, name) for name in names)


def _checked(type_: TypeEngine[Any], kind: JsonKind) -> JsonKind:
    if isinstance(type_, DateTime) and not type_.timezone:
        raise Unfit(
            "its type has no time zone, so producer and worker may read it differently; if it is UTC, "
            "say so: type_coerce(column, DateTime(timezone=True))"
        )
    if isinstance(type_, Float) and type_.asdecimal:
        return JsonKind.DECIMAL
    if kind is JsonKind.DECIMAL and not getattr(type_, "asdecimal", True):
        return JsonKind.FLOAT
    return kind


_KINDS: tuple[tuple[type[Any], JsonKind], ...] = (
    (Boolean, JsonKind.BOOLEAN),
    (Enum, JsonKind.CHOICE),
    (Uuid, JsonKind.UUID),
    (Integer, JsonKind.INTEGER),
    (Float, JsonKind.FLOAT),
    (Numeric, JsonKind.DECIMAL),
    (JSON, JsonKind.JSON),
    (String, JsonKind.TEXT),
    (LargeBinary, JsonKind.BYTES),
    (BINARY, JsonKind.BYTES),
    (VARBINARY, JsonKind.BYTES),
    (DateTime, JsonKind.DATETIME),
    (Date, JsonKind.DATE),
)


def _uuid_form(type_: TypeEngine[Any], dialect: Dialect) -> UuidForm:
    inner = type_.dialect_impl(dialect)
    while isinstance(inner, TypeDecorator):
        inner = inner.load_dialect_impl(dialect).dialect_impl(dialect)
    if isinstance(inner, (LargeBinary, BINARY, VARBINARY)):
        return UuidForm.BINARY
    native = isinstance(inner, Uuid) and inner.native_uuid and dialect.supports_native_uuid
    return UuidForm.NATIVE if native else UuidForm.HEX


def text_literal(text: str) -> ColumnElement[str]:
    """A short text as a part of the SQL, not a parameter."""
    return literal_column("'" + text.replace("'", "''") + "'", Text())


def text_parameter(text: str) -> ColumnElement[str]:
    """A text as a parameter."""
    return bindparam(None, text, type_=Text())


@dataclass(frozen=True, slots=True)
class TriggerParts:
    """What a trigger does, as SQL over the rows ``NEW`` and ``OLD``."""

    name: str
    table: str
    schema: str
    """With its dot, or empty."""
    inserted: str | None
    """When a new row counts as a change; None: never."""
    updated: str
    insert: str
    """The INSERT, for a trigger that has the condition itself."""
    insert_if_inserted: str
    insert_if_updated: str
    """The INSERT with the condition in it."""


@dataclass(frozen=True, slots=True)
class TriggerSQL:
    """The statements that make and drop a trigger."""

    create: tuple[str, ...]
    drop: tuple[str, ...]


class Derivation:
    """Makes JSON text; the databases differ in how they write each kind of value."""

    quote: ClassVar[ColumnElement[str]] = text_literal('"')
    functions: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})
    """What the database has to call back into Python for; each takes one argument."""

    def new_id(self) -> ColumnElement[Any]:
        """A UUID of version 7 by the database's clock, another one for each row, in the form of the id column."""
        raise NotImplementedError

    def new_text_id(self) -> ColumnElement[Any]:
        """The same as 36 characters, or the database's own type for UUIDs."""
        return self.uuid(self.new_id(), UuidForm.BINARY)

    def value(self, column: ColumnElement[Any], held: Held) -> ColumnElement[Any]:
        """The JSON form of a column; NULL for NULL."""
        match held.kind:
            case JsonKind.TEXT:
                return self.text(column)
            case JsonKind.INTEGER:
                return self.integer(column)
            case JsonKind.FLOAT:
                return self.floating(column)
            case JsonKind.DECIMAL:
                return self.quoted(self.decimal(column, held.scale))
            case JsonKind.BOOLEAN:
                return self.boolean(column)
            case JsonKind.DATETIME:
                return self.quoted(self.moment(column))
            case JsonKind.DATE:
                return self.quoted(self.date(column))
            case JsonKind.UUID:
                return self.quoted(self.uuid(column, held.uuid_form))
            case JsonKind.BYTES:
                return self.quoted(self.base64(column))
            case JsonKind.CHOICE:
                return self.choice(column, held.choices)
            case JsonKind.JSON:
                return self.document(column)

    def key_text(self, column: ColumnElement[Any], held: Held) -> ColumnElement[Any]:
        """A column of text, whole numbers or UUIDs as the text of a key."""
        match held.kind:
            case JsonKind.INTEGER:
                return self.integer(column)
            case JsonKind.UUID:
                return self.uuid(column, held.uuid_form)
            case _:
                return column

    def key_hash(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """The first 16 bytes of the SHA-256 of a text in UTF-8, in the form of the id column."""
        raise NotImplementedError

    def triggers(self, parts: TriggerParts) -> TriggerSQL | None:
        """A trigger after INSERT, and one after UPDATE; None: not offered."""
        return None

    def json_object(self, members: Sequence[Member]) -> ColumnElement[Any]:
        """The members as one JSON object, in the form of a JSON column."""
        parts: list[ColumnElement[str] | str] = []
        for number, member in enumerate(members):
            parts.append(f"{', ' if number else '{'}{json.dumps(member.name, ensure_ascii=False)}: ")
            if isinstance(member.value, str) or member.null != "allowed":
                parts.append(member.value)
            else:
                parts.append(func.coalesce(member.value, text_literal("null"), type_=Text()))
        parts.append("}" if members else "{}")
        return self.joined(*_merged(parts))

    def joined(self, *parts: ColumnElement[str]) -> ColumnElement[str]:
        """The texts one after the other; NULL if one is NULL."""
        raise NotImplementedError

    def quoted(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """Text without any character that JSON would escape, as a JSON string."""
        return self.joined(self.quote, text, self.quote)

    def text(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Any text, escaped and in quotes."""
        raise NotImplementedError

    def integer(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        raise NotImplementedError

    def floating(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """With as many digits as bring the same number back."""
        raise NotImplementedError

    def decimal(self, column: ColumnElement[Any], scale: int) -> ColumnElement[str]:
        raise NotImplementedError

    def boolean(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return case(
            (column.is_(null()), literal_column("NULL", Text())),
            (type_coerce(column, Integer()) != literal_column("0", Integer()), text_literal("true")),
            else_=text_literal("false"),
        )

    def moment(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """ISO 8601 in UTC with ``+00:00``."""
        raise NotImplementedError

    def date(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        raise NotImplementedError

    def uuid(self, column: ColumnElement[Any], form: UuidForm) -> ColumnElement[str]:
        """36 characters in lower case."""
        raise NotImplementedError

    def base64(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """Without line breaks."""
        raise NotImplementedError

    def choice(self, column: ColumnElement[Any], choices: Sequence[tuple[str, str]]) -> ColumnElement[Any]:
        """For each text in the column the JSON text of what it stands for."""
        return case(
            {stored: text_parameter(json_text) for stored, json_text in choices}, value=type_coerce(column, Text())
        )

    def document(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """A column that holds JSON."""
        raise NotImplementedError


def _merged(parts: Sequence[ColumnElement[str] | str]) -> list[ColumnElement[str]]:
    """Neighbouring constant texts as one parameter."""
    merged: list[ColumnElement[str]] = []
    constant = ""
    for part in parts:
        if isinstance(part, str):
            constant += part
            continue
        if constant:
            merged.append(text_parameter(constant))
        constant = ""
        merged.append(part)
    return [*merged, text_parameter(constant)] if constant else merged
