"""Column types that no dialect brings along. The models convert UUIDs and datetimes before these see them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Text, cast
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.types import TypeEngine, UserDefinedType


class JsonbText(UserDefinedType[str]):
    """``JSONB`` that is JSON text in Python: the library encodes and decodes, not the driver or the engine."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:
        return "JSONB"

    def bind_expression(self, bindvalue: BindParameter[str]) -> ColumnElement[str]:
        return cast(bindvalue, JsonbText())

    def column_expression(self, colexpr: ColumnElement[Any]) -> ColumnElement[str]:
        return cast(colexpr, Text)

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:
        return Text()
