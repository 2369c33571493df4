"""What each column of a queue table is; both mixins build their columns from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Integer, SmallInteger, String, text
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


def _string(length: int) -> Callable[[], Type]:
    return lambda: String(length)


def _literal(sql: str) -> Callable[[], Any]:
    return lambda: text(sql)


COLUMNS: dict[str, ColumnSpec] = {
    "id": ColumnSpec(TaskId),
    "name": ColumnSpec(_string(120)),
    "queue": ColumnSpec(_string(64), server_default=_literal("'default'")),
    "priority": ColumnSpec(SmallInteger, server_default=_literal("0")),
    "status": ColumnSpec(StatusName, server_default=_literal("'NEW'")),
    "scheduled_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "ready_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "body": ColumnSpec(JsonText),
    "headers": ColumnSpec(JsonText, nullable=True),
    "attempt": ColumnSpec(Integer, server_default=_literal("0")),
    "max_attempts": ColumnSpec(Integer, server_default=_literal("10")),
    "crashes": ColumnSpec(Integer, server_default=_literal("0")),
    "epoch": ColumnSpec(BigInteger, server_default=_literal("0")),
    "reserved_until": ColumnSpec(UtcDateTime, nullable=True),
    "reserved_by": ColumnSpec(_string(200), nullable=True),
    "unique_key": ColumnSpec(_string(1024), nullable=True),
    "unique_hash": ColumnSpec(KeyHash, nullable=True),
    "unique_until": ColumnSpec(_string(5), nullable=True),
    "error": ColumnSpec(JsonText, nullable=True),
    "errors": ColumnSpec(JsonText, nullable=True),
    "result": ColumnSpec(JsonText, nullable=True),
    "created_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "finished_at": ColumnSpec(UtcDateTime, nullable=True),
}

_ORDER = {name: position - len(COLUMNS) for position, name in enumerate(COLUMNS)}


def queue_column(name: str, **options: Any) -> MappedColumn[Any]:
    """The column of that name, before the user's own in the table. `options` are those of `mapped_column`."""
    spec = COLUMNS[name]
    return mapped_column(
        name,
        spec.type(),
        nullable=spec.nullable,
        server_default=spec.server_default() if spec.server_default else None,
        primary_key=name == "id",
        sort_order=_ORDER[name],
        **options,
    )
