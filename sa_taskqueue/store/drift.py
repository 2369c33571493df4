"""Whether the database has the table as the model says, without Alembic."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import Connection, Table, inspect, update
from sqlalchemy.exc import NoSuchTableError

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import IndexMissing, NarrowCharset, SchemaMissing, SchemaOutdated
from sa_taskqueue.models.columns import COLUMNS
from sa_taskqueue.models.debezium import DEBEZIUM_COLUMNS
from sa_taskqueue.models.inbox import INBOX_COLUMNS
from sa_taskqueue.models.outbox import OUTBOX_COLUMNS
from sa_taskqueue.models.outbox_key import OUTBOX_KEY_COLUMNS

_OURS = {*COLUMNS, *OUTBOX_COLUMNS, *OUTBOX_KEY_COLUMNS, *INBOX_COLUMNS, *DEBEZIUM_COLUMNS}

NOBODY = uuid.UUID(int=0)


def check_schema(connection: Connection, table: Table) -> None:
    """Raise the named error for the first thing in which the database differs.

    `SchemaMissing`, `SchemaOutdated`, `IndexMissing`, or `NarrowCharset` on MySQL and MariaDB.
    Columns and indexes the database has beside those of the model are the user's business.
    """
    schema = _schema(connection, table)
    check_columns(connection, table)
    inspector = inspect(connection)
    found = inspector.get_indexes(table.name, schema=schema)
    unique = inspector.get_unique_constraints(table.name, schema=schema)
    _check_charsets(connection, table, schema)
    named = {str(each["name"]) for each in found if None in each["column_names"]}
    _check_indexes(table, [(each["column_names"], bool(each["unique"])) for each in found], unique, named)


def check_columns(connection: Connection, table: Table) -> None:
    """`SchemaMissing` or `SchemaOutdated` if the database has not got the table, or not all of its columns."""
    schema = _schema(connection, table)
    inspector = inspect(connection)
    try:
        columns = {column["name"] for column in inspector.get_columns(table.name, schema=schema)}
    except NoSuchTableError as error:
        raise SchemaMissing(table=table.fullname) from error
    for column in table.c:
        if column.name not in columns:
            raise SchemaOutdated(table=table.fullname, column=column.name)


def check_writable(connection: Connection, table: Table) -> None:
    """Change no row: a connection that may not write to the table says so now, and not at the first claim."""
    connection.execute(update(table).where(table.c.id == NOBODY).values(epoch=table.c.epoch))


def _check_charsets(connection: Connection, table: Table, schema: str | None) -> None:
    narrow = adapter_for(connection.dialect).narrow_columns(table.name, schema)
    if narrow is None:
        return
    for column, charset in connection.execute(narrow):
        if column in _OURS:
            raise NarrowCharset(table=table.fullname, column=column, charset=charset)


def _check_indexes(
    table: Table, indexes: list[tuple[list[str | None], bool]], constraints: list[Any], named: set[str]
) -> None:
    """An index of another name over the same columns serves as well; one over expressions is known by its name."""
    indexes = indexes + [(each["column_names"], True) for each in constraints]
    for index in sorted(table.indexes, key=lambda index: index.name or ""):
        columns = [column.name for column in index.columns]
        same = any(columns == names and unique >= bool(index.unique) for names, unique in indexes)
        if not same and index.name not in named:
            raise IndexMissing(table=table.fullname, index=str(index.name), columns=", ".join(columns))


def _schema(connection: Connection, table: Table) -> str | None:
    translated = connection.get_execution_options().get("schema_translate_map") or {}
    schema: str | None = translated.get(table.schema, table.schema)
    return schema
