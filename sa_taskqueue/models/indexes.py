"""The indexes of the library's tables, by role: each serves one statement of the workers or relays."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Index, Table, and_, literal_column

from sa_taskqueue.adapters.registry import index_options, unique_options
from sa_taskqueue.models.names import explicit_name
from sa_taskqueue.states import TERMINAL, Status


class IndexRole(NamedTuple):
    """The statement an index is for, its columns, and the rows it holds where the database has partial indexes."""

    role: str
    columns: tuple[str, ...]
    statuses: tuple[enum.StrEnum, ...] = ()
    also: Callable[[Table], ColumnElement[bool]] | None = None
    """What holds besides for a row in the index."""


QUEUE_INDEXES = (
    IndexRole("claim", ("queue", "status", "priority", "ready_at", "id"), (Status.NEW,)),
    IndexRole("promote", ("status", "priority", "scheduled_at", "id"), (Status.SCHEDULED,)),
    IndexRole("take_over", ("status", "reserved_until", "id"), (Status.RUNNING,)),
    IndexRole("prune", ("status", "finished_at", "id"), tuple(sorted(TERMINAL))),
)

UNIQUE_COLUMN = "unique_hash"


def complete_table(table: Table, roles: Sequence[IndexRole]) -> None:
    """Add the indexes the table has not got yet. One of the same name in the user's `__table_args__` stands.

    A table without the columns (joined inheritance from a queue model) is left alone.
    """
    for role in roles:
        if all(column in table.c for column in role.columns):
            _add(table, index_name(table, role.role), role.columns, index_options(_rows(table, role)))
    if UNIQUE_COLUMN in table.c:
        options = {"unique": True, **unique_options(table.c[UNIQUE_COLUMN])}
        _add(table, unique_index_name(table), (UNIQUE_COLUMN,), options)


def index_name(table: Table, role: str) -> str:
    """The name of the index for that role."""
    return explicit_name("ix", table.name, role)


def unique_index_name(table: Table) -> str:
    """The name of the index that makes the hash of the unique key unique."""
    return explicit_name("uq", table.name, UNIQUE_COLUMN)


def _add(table: Table, name: str, columns: Sequence[str], options: dict[str, Any]) -> None:
    if name not in {index.name for index in table.indexes}:
        Index(name, *(table.c[column] for column in columns), **options)


def _rows(table: Table, role: IndexRole) -> ColumnElement[bool] | None:
    """The rows of the role; its statuses as literals: DDL takes no parameters."""
    also = role.also(table) if role.also else None
    if not role.statuses:
        return also
    names: list[ColumnElement[str]] = [literal_column(f"'{status.value}'") for status in role.statuses]
    rows = table.c.status == names[0] if len(names) == 1 else table.c.status.in_(names)
    return rows if also is None else and_(rows, also)
