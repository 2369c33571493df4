"""MySQL and MariaDB: JSON as text, put together of parts that are all utf8mb4; ids of clock and RANDOM_BYTES.

No number goes through their JSON type, which keeps floats of single precision with digits that nobody wrote.
https://dev.mysql.com/doc/refman/8.4/en/json-creation-functions.html, encryption-functions.html, string-functions.html
https://mariadb.com/docs/server/reference/sql-functions
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import CHAR, ColumnElement, Integer, LargeBinary, Text, cast, func, literal_column

from sa_taskqueue.adapters.derived import Derivation, TriggerParts, TriggerSQL, UuidForm, text_literal

_MILLISECONDS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
"""Not UNIX_TIMESTAMP, which is in doubt for an hour a year in most time zones."""

_RANDOM = {
    True: ("HEX(RANDOM_BYTES(2))", "ORD(RANDOM_BYTES(1))", "HEX(RANDOM_BYTES(8))"),
    # MariaDB before 10.10: UUID() never gives the same value twice, and the hash spreads it over all bits.
    False: ("SHA1(UUID())", "ORD(UNHEX(SHA1(UUID())))", "SHA1(CONCAT(UUID(), RAND()))"),
}


class MySQLDerivation(Derivation):
    """For both, and every version."""

    backslash: ClassVar[bool] = True

    def __init__(self, *, random_bytes: bool = True) -> None:
        self._random = _RANDOM[random_bytes]

    def new_id(self) -> ColumnElement[Any]:
        high, variant, low = self._random
        return func.unhex(
            func.concat(
                literal_column(f"LPAD(HEX({_MILLISECONDS}), 12, '0')", Text()),
                text_literal("7"),
                literal_column(f"SUBSTR({high}, 2, 3)", Text()),
                literal_column(f"SUBSTR('89AB', 1 + ({variant} & 3), 1)", Text()),
                literal_column(f"SUBSTR({low}, 2, 15)", Text()),
            ),
            type_=LargeBinary(),
        )

    def key_hash(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.unhex(func.left(func.sha2(_utf8(text), _number(256)), _number(32)), type_=LargeBinary())

    def triggers(self, parts: TriggerParts) -> TriggerSQL | None:
        # One statement each, without BEGIN and END, so that no client has to be told of another delimiter.
        bodies = {"insert": parts.inserted and parts.insert_if_inserted, "update": parts.insert_if_updated}
        create = [
            f"CREATE TRIGGER {parts.schema}{parts.name}_{event} AFTER {event.upper()} ON {parts.table}\n"
            f"FOR EACH ROW {body}"
            for event, body in bodies.items()
            if body
        ]
        drop = [f"DROP TRIGGER IF EXISTS {parts.schema}{parts.name}_{event}" for event in bodies]
        return TriggerSQL(tuple(create), tuple(drop))

    def joined(self, *parts: ColumnElement[str]) -> ColumnElement[str]:
        return func.concat(*parts, type_=Text())

    def text(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.json_quote(_utf8(column), type_=Text())

    def integer(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return cast(column, CHAR())

    def floating(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        # CONCAT, and not CAST, writes as many digits as bring the same number back on both.
        return func.concat(column, type_=Text())

    def decimal(self, column: ColumnElement[Any], scale: int) -> ColumnElement[str]:
        return cast(column, CHAR())

    def moment(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return func.date_format(column, text_literal("%Y-%m-%dT%H:%i:%s.%f+00:00"), type_=Text())

    def date(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return func.date_format(column, text_literal("%Y-%m-%d"), type_=Text())

    def uuid(self, column: ColumnElement[Any], form: UuidForm) -> ColumnElement[str]:
        # MariaDB's own type is written with dashes.
        plain = func.replace(cast(column, CHAR()), text_literal("-"), text_literal(""), type_=Text())
        digits = func.hex(column, type_=Text()) if form is UuidForm.BINARY else plain
        made: ColumnElement[Any] = func.lower(digits, type_=Text())
        for place in (9, 14, 19, 24):
            made = func.insert(made, _number(place), _number(0), text_literal("-"), type_=Text())
        return made

    def base64(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return func.replace(func.to_base64(column), func.char(_number(10)), text_literal(""), type_=Text())

    def document(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return _utf8(column)


def _utf8(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Of two columns with different collations the text put together would have none."""
    return func.convert(column.op("USING")(literal_column("utf8mb4")), type_=Text())


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer())
