"""Whether the database has the table as the model says, without Alembic."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, inspect
from sqlalchemy.exc import NoSuchTableError

from sa_taskqueue.exceptions import IndexMissing, SchemaMissing, SchemaOutdated


def check_schema(connection: Connection, table: Table) -> None:
    """Raise `SchemaMissing`, `SchemaOutdated` or `IndexMissing` for the first thing that the database has not got.

    Columns and indexes the database has beside those of the model are the user's business.
    """
    schema = _schema(connection, table)
    inspector = inspect(connection)
    try:
        columns = {column["name"] for column in inspector.get_columns(table.name, schema=schema)}
    except NoSuchTableError as error:
        raise SchemaMissing(table=table.fullname) from error
    for column in table.c:
        if column.name not in columns:
            raise SchemaOutdated(table=table.fullname, column=column.name)
    found = inspector.get_indexes(table.name, schema=schema)
    unique = inspector.get_unique_constraints(table.name, schema=schema)
    _check_indexes(table, [(each["column_names"], bool(each["unique"])) for each in found], unique)


def _check_indexes(table: Table, indexes: list[tuple[list[str | None], bool]], constraints: list[Any]) -> None:
    """An index of another name over the same columns serves as well."""
    indexes = indexes + [(each["column_names"], True) for each in constraints]
    for index in sorted(table.indexes, key=lambda index: index.name or ""):
        columns = [column.name for column in index.columns]
        if not any(columns == names and unique >= bool(index.unique) for names, unique in indexes):
            raise IndexMissing(table=table.fullname, index=str(index.name), columns=", ".join(columns))


def _schema(connection: Connection, table: Table) -> str | None:
    translated = connection.get_execution_options().get("schema_translate_map") or {}
    schema: str | None = translated.get(table.schema, table.schema)
    return schema
