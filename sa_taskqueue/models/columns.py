"""What each column of a table of the library is; the mixins build their columns from such lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Integer, SmallInteger, Unicode, text
from sqlalchemy.orm import MappedColumn, mapped_column
from sqlalchemy.types import TypeEngine

from sa_taskqueue.models.clock import DatabaseClock
from sa_taskqueue.models.types import JsonText, KeyHash, StatusName, TaskId, UtcDateTime

Type = TypeEngine[Any]


class ColumnSpec(NamedTuple):
    """A column's type, whether it may be NULL, and what the database fills in where the INSERT leaves it out."""

    type: Callable[[], Type]
    nullable: bool = False
    server_default: Callable[[], Any] | None = None


def string(length: int) -> Callable[[], Type]:
    """NVARCHAR on SQL Server: pymssql sends text as N'...', and such text finds no key of an index over a VARCHAR."""
    return lambda: Unicode(length)


def literal(sql: str) -> Callable[[], Any]:
    return lambda: text(sql)


COLUMNS: dict[str, ColumnSpec] = {
    "id": ColumnSpec(TaskId),
    "name": ColumnSpec(string(120)),
    "queue": ColumnSpec(string(64), server_default=literal("'default'")),
    "priority": ColumnSpec(SmallInteger, server_default=literal("0")),
    "status": ColumnSpec(StatusName, server_default=literal("'NEW'")),
    "scheduled_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "ready_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "body": ColumnSpec(JsonText),
    "headers": ColumnSpec(JsonText, nullable=True),
    "attempt": ColumnSpec(Integer, server_default=literal("0")),
    "max_attempts": ColumnSpec(Integer, server_default=literal("10")),
    "crashes": ColumnSpec(Integer, server_default=literal("0")),
    "epoch": ColumnSpec(BigInteger, server_default=literal("0")),
    "reserved_until": ColumnSpec(UtcDateTime, nullable=True),
    "reserved_by": ColumnSpec(string(200), nullable=True),
    "unique_key": ColumnSpec(string(1024), nullable=True),
    "unique_hash": ColumnSpec(KeyHash, nullable=True),
    "unique_until": ColumnSpec(string(5), nullable=True),
    "error": ColumnSpec(JsonText, nullable=True),
    "errors": ColumnSpec(JsonText, nullable=True),
    "result": ColumnSpec(JsonText, nullable=True),
    "created_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "finished_at": ColumnSpec(UtcDateTime, nullable=True),
}


def column_of(specs: Mapping[str, ColumnSpec], name: str, **options: Any) -> MappedColumn[Any]:
    """The column of that name, before the user's own in the table. `options` are those of `mapped_column`."""
    spec = specs[name]
    return mapped_column(
        name,
        spec.type(),
        nullable=spec.nullable,
        server_default=spec.server_default() if spec.server_default else None,
        primary_key=name == "id",
        sort_order=list(specs).index(name) - len(specs),
        **options,
    )


def queue_column(name: str, **options: Any) -> MappedColumn[Any]:
    """The column of that name of a queue table."""
    return column_of(COLUMNS, name, **options)
