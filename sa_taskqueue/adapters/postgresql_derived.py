"""PostgreSQL: JSON objects by ``jsonb_build_object``, ids by ``uuidv7()`` (18 and later) or from a random UUID.

https://www.postgresql.org/docs/current/functions-json.html, functions-uuid.html, functions-binarystring.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    LargeBinary,
    String,
    Text,
    case,
    cast,
    func,
    literal_column,
    null,
    or_,
)
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.types import TypeEngine

from sa_taskqueue.adapters.base import at_least
from sa_taskqueue.adapters.derived import (
    Derivation,
    Held,
    JsonKind,
    Member,
    TriggerParts,
    TriggerSQL,
    UuidForm,
    text_literal,
    text_parameter,
)
from sa_taskqueue.adapters.types import JsonbText

_NEW_ID = (
    # 48 bits of time over the first six bytes of a random UUID, then version 4 becomes 7.
    "CAST(encode(set_bit(set_bit(overlay(uuid_send({random}) PLACING substring(int8send("
    "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')"
    " AS uuid)"
)
_RANDOM = "gen_random_uuid()"
_HASHED = (
    # Before version 13 no function of the server itself makes one.
    "CAST(overlay(overlay(md5(CAST(random() AS text) || CAST(random() AS text) || CAST(clock_timestamp() AS text))"
    " PLACING '4' FROM 13) PLACING '8' FROM 17) AS uuid)"
)

_MOST_ARGUMENTS = 100
"""That a function of PostgreSQL takes."""


class PostgreSQLDerivation(Derivation):
    """For every version with JSONB (9.5)."""

    def __init__(self, version: tuple[int, ...] | None) -> None:
        self._version = version

    def new_id(self) -> ColumnElement[Any]:
        if self._version is not None and self._version >= (18,):  # a migration may be written without a server
            return func.uuidv7(type_=UUID())
        random = _RANDOM if at_least(self._version, 13) else _HASHED
        return literal_column(_NEW_ID.format(random=random), UUID())

    def new_text_id(self) -> ColumnElement[Any]:
        return self.new_id()

    def key_text(self, column: ColumnElement[Any], held: Held) -> ColumnElement[Any]:
        return cast(super().key_text(column, held), Text())

    def integer(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    def key_hash(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        digest = func.sha256(func.convert_to(text, text_literal("UTF8")), type_=LargeBinary())  # from version 11 on
        digits = func.encode(func.substring(digest, _number(1), _number(16)), text_literal("hex"), type_=Text())
        return cast(digits, UUID())

    def triggers(self, parts: TriggerParts) -> TriggerSQL | None:
        function = f"{parts.schema}{parts.name}"
        events = {"insert": parts.inserted, "update": parts.updated}
        make = (
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $sa_taskqueue$\n"
            f"BEGIN\n{parts.insert};\nRETURN NULL;\nEND\n$sa_taskqueue$"
        )
        create = [
            f"CREATE TRIGGER {parts.name}_{event} AFTER {event.upper()} ON {parts.table}\n"
            f"FOR EACH ROW WHEN ({condition}) EXECUTE PROCEDURE {function}()"
            for event, condition in events.items()
            if condition is not None
        ]
        drop = [f"DROP TRIGGER IF EXISTS {parts.name}_{event} ON {parts.table}" for event in events]
        return TriggerSQL((make, *create), (*drop, f"DROP FUNCTION IF EXISTS {function}()"))

    def json_object(self, members: Sequence[Member]) -> ColumnElement[Any]:
        made: ColumnElement[Any] | None = None
        pairs = _MOST_ARGUMENTS // 2
        for start in range(0, len(members), pairs) or (0,):
            part = self._built(members[start : start + pairs])
            made = part if made is None else made.op("||", return_type=JsonbText())(part)
        refused = [
            member.value.is_(null())
            for member in members
            if member.null == "refused" and isinstance(member.value, ColumnElement)
        ]
        whole = made if made is not None else self._built(())
        return case((or_(*refused), literal_column("NULL", JsonbText())), else_=whole) if refused else whole

    def _built(self, members: Sequence[Member]) -> ColumnElement[Any]:
        arguments: list[ColumnElement[Any]] = []
        for member in members:
            value = member.value
            constant = cast(text_parameter(value), JsonbText()) if isinstance(value, str) else value
            # A parameter alone has no type that the function could know.
            arguments += (cast(text_parameter(member.name), Text()), constant)
        return func.jsonb_build_object(*arguments, type_=JsonbText())

    def value(self, column: ColumnElement[Any], held: Held) -> ColumnElement[Any]:
        """The function writes text, numbers, truth, dates, UUIDs and JSON as Python does."""
        match held.kind:
            case JsonKind.INTEGER | JsonKind.FLOAT | JsonKind.BOOLEAN | JsonKind.DATE | JsonKind.JSON:
                return column
            case JsonKind.TEXT:
                return cast(column, Text())
            case JsonKind.UUID if held.uuid_form is UuidForm.NATIVE:
                return column
            case _:
                return super().value(column, held)

    def quoted(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def decimal(self, column: ColumnElement[Any], scale: int) -> ColumnElement[str]:
        return cast(column, Text())

    def moment(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        utc = func.timezone(text_literal("UTC"), column)
        return func.to_char(utc, text_literal('YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'), type_=Text())

    def uuid(self, column: ColumnElement[Any], form: UuidForm) -> ColumnElement[str]:
        text = func.encode(column, text_literal("hex"), type_=Text()) if form is UuidForm.BINARY else column
        return cast(cast(text, UUID()), Text())

    def base64(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        lines = func.encode(column, text_literal("base64"), type_=Text())
        return func.replace(lines, func.chr(_number(10)), text_literal(""), type_=Text())

    def choice(self, column: ColumnElement[Any], choices: Sequence[tuple[str, str]]) -> ColumnElement[Any]:
        type_: TypeEngine[Any] = JsonbText()
        return case(
            {stored: cast(text_parameter(json_text), type_) for stored, json_text in choices},
            value=cast(column, String()),
        )


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer())
