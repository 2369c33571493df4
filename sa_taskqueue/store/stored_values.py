"""One value of one row, as it is stored at the moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, Connection, select


def stored_value(connection: Connection, column: Column[Any], key: Mapping[Any, Any]) -> Any:
    """The column's value in the row with this primary key; None where there is no such row."""
    mine = [own == value for own, value in _of_table(column, key)]
    return connection.execute(select(column).where(*mine)).scalar()


def _of_table(column: Column[Any], key: Mapping[Any, Any]) -> list[tuple[Column[Any], Any]]:
    """The key by the columns of the column's own table: in joined inheritance it has a copy of the key."""
    table: Any = column.table
    return list(zip(table.primary_key.columns, key.values(), strict=True))
