"""Which rows an index of the library holds, on databases with partial indexes and on Oracle."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class IndexedRows(ColumnElement[bool]):
    """The condition of a partial index. Its class tells the library's own indexes from the user's."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, condition: ColumnElement[bool]) -> None:
        self.condition = condition


@compiles(IndexedRows)
def _compile_rows(rows: IndexedRows, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(rows.condition, **options)
