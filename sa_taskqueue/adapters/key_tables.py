"""A temporary table for the keys of the rows that several statements are about."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.expression import Executable

from sa_taskqueue.adapters.shapes import AnySelect


class CreateKeyTable(Executable, ClauseElement):
    """CREATE TEMPORARY TABLE ... AS SELECT: the columns have the types and collations of those that they refer to."""

    inherit_cache = False

    def __init__(self, keys: Table, rows: AnySelect, prefix: str, *, primary_key: bool = False) -> None:
        self.keys = keys
        self.rows = rows
        self.prefix = prefix
        self.primary_key = primary_key


@compiles(CreateKeyTable)
def _compile_create(create: CreateKeyTable, compiler: SQLCompiler, **options: Any) -> str:
    key = ""
    if create.primary_key:
        columns = ", ".join(compiler.preparer.format_column(column) for column in create.keys.c)
        key = f" (PRIMARY KEY ({columns}))"
    rows = compiler.process(create.rows, **{**options, "literal_binds": True})
    return f"CREATE {create.prefix} TABLE {compiler.preparer.format_table(create.keys)}{key} AS {rows}"
