"""SQLite: JSON as text. It has no function for base64, for bytes by number, nor for ids: each is put together here.

https://www.sqlite.org/json1.html, lang_corefunc.html, printf.html. A column can hold a value of any type, so that
numbers are converted: text in a column of numbers must not become a part of the JSON.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from sqlalchemy import REAL, ColumnElement, Integer, LargeBinary, Text, case, cast, func, literal_column, null
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from sa_taskqueue.adapters.derived import Derivation, TriggerParts, TriggerSQL, UuidForm, text_literal

_BYTES = bytes(range(256)).hex().upper()
_VARIANTS = bytes(range(0x80, 0xC0)).hex().upper()
_MILLISECONDS = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
_TIME = " || ".join(f"substr(bytes, 1 + ((ms >> {shift}) & 255), 1)" for shift in range(40, -1, -8))

_NEW_ID = (
    # The clock stands still during a statement, so this sub-query may be evaluated once. The rest is anew in each row.
    f"CAST((SELECT {_TIME} FROM (SELECT x'{_BYTES}' AS bytes, {_MILLISECONDS} AS ms))"
    f" || char(112 + (random() & 15)) || randomblob(1)"
    f" || substr(x'{_VARIANTS}', 1 + (random() & 63), 1) || randomblob(7) AS BLOB)"
)

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_DIGITS = [f"(instr('0123456789ABCDEF', substr(hex, place + {offset}, 1)) - 1)" for offset in range(3)]
_TWELVE_BITS = f"({_DIGITS[0]} * 256 + {_DIGITS[1]} * 16 + {_DIGITS[2]})"


class Base64(FunctionElement[str]):
    """Three hexadecimal digits are two digits of base64."""

    inherit_cache = True
    type = Text()
    name = "base64"


@compiles(Base64)
def _compile_base64(element: Base64, compiler: SQLCompiler, **options: Any) -> str:
    [column] = element.clauses
    sql = compiler.process(column, **options)
    percent = "%%" if compiler.preparer._double_percents else "%"  # noqa: SLF001 - as literal columns are escaped
    return (
        f"(WITH RECURSIVE made(hex, place, done) AS (SELECT hex({sql}) || '0000', 1, '' UNION ALL"
        f" SELECT hex, place + 3, done || substr('{_ALPHABET}', 1 + {_TWELVE_BITS} / 64, 1)"
        f" || substr('{_ALPHABET}', 1 + {_TWELVE_BITS} {percent} 64, 1) FROM made WHERE place <= length(hex) - 4)"
        f" SELECT substr(done, 1, (4 * length({sql}) + 2) / 3)"
        f" || substr('==', 1, (3 - length({sql}) {percent} 3) {percent} 3) FROM made ORDER BY place DESC LIMIT 1)"
    )


def _key_hash(text: Any) -> bytes | None:
    """SQLite has no hash of its own."""
    return None if text is None else hashlib.sha256(str(text).encode()).digest()[:16]


def _uuid_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


class SQLiteDerivation(Derivation):
    """For every version with JSON functions."""

    def new_id(self) -> ColumnElement[Any]:
        return literal_column(_NEW_ID, LargeBinary())

    functions: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
        {"sa_taskqueue_key_hash": _key_hash, "sa_taskqueue_uuid_text": _uuid_text}
    )

    def new_text_id(self) -> ColumnElement[Any]:
        # An expression over the id would make another one for each place it stands in.
        return func.sa_taskqueue_uuid_text(self.new_id(), type_=Text())

    def key_hash(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.sa_taskqueue_key_hash(text, type_=LargeBinary())

    def triggers(self, parts: TriggerParts) -> TriggerSQL | None:
        events = {"insert": parts.inserted, "update": parts.updated}
        create = [
            f"CREATE TRIGGER {parts.schema}{parts.name}_{event} AFTER {event.upper()} ON {parts.table}\n"
            f"FOR EACH ROW WHEN {condition}\nBEGIN\n{parts.insert};\nEND"
            for event, condition in events.items()
            if condition is not None
        ]
        return TriggerSQL(
            tuple(create), tuple(f"DROP TRIGGER IF EXISTS {parts.schema}{parts.name}_{event}" for event in events)
        )

    def joined(self, *parts: ColumnElement[str]) -> ColumnElement[str]:
        first, *rest = parts
        made: ColumnElement[Any] = first
        for part in rest:
            made = made.op("||", precedence=100, return_type=Text())(part)
        return made

    def text(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return self._unless_null(column, func.json_quote(cast(column, Text()), type_=Text()))

    def integer(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return cast(cast(column, Integer()), Text())

    def floating(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        # 17 digits should do, but SQLite's own arithmetic lost the last bit of 24 in 20,000 numbers; with 18 and more
        # of none (3.40, 2026-12-01).
        return self._unless_null(column, func.printf(text_literal("%!.20g"), cast(column, REAL()), type_=Text()))

    def decimal(self, column: ColumnElement[Any], scale: int) -> ColumnElement[str]:
        # As SQLAlchemy makes a Decimal of the float that SQLite has stored.
        return self._unless_null(column, func.printf(text_literal(f"%.{scale}f"), column, type_=Text()))

    def moment(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        iso = func.replace(column, text_literal(" "), text_literal("T"), type_=Text())
        return self.joined(self._plain(iso), text_literal("+00:00"))

    def date(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return self._plain(column)

    def uuid(self, column: ColumnElement[Any], form: UuidForm) -> ColumnElement[str]:
        plain = func.replace(self._plain(column), text_literal("-"), text_literal(""), type_=Text())
        digits = func.hex(column, type_=Text()) if form is UuidForm.BINARY else plain
        lower = func.lower(digits, type_=Text())
        parts: list[ColumnElement[str]] = []
        for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12)):
            parts += (func.substr(lower, _number(start), _number(length), type_=Text()), text_literal("-"))
        return self._unless_null(column, self.joined(*parts[:-1]))

    def base64(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return self._unless_null(column, Base64(column))

    def document(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.json(column, type_=Text())  # raises for what is not JSON

    def _plain(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """Text that stands in quotes as it is, whatever somebody has put into the column."""
        return func.replace(
            func.replace(column, text_literal("\\"), text_literal("")), text_literal('"'), text_literal("")
        )

    def _unless_null(self, column: ColumnElement[Any], made: ColumnElement[Any]) -> ColumnElement[Any]:
        """For functions that make something of NULL."""
        return case((column.is_not(null()), made))


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer())
