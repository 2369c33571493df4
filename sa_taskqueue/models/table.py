"""What the mixins add to a table beside its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlalchemy import Table

from sa_taskqueue.adapters.registry import table_options
from sa_taskqueue.models.indexes import IndexRole, complete_table


class LibraryTable:
    """Adds the indexes and the table options after the user's `__table_args__`, which may thus say anything.

    No server default is fetched back after an INSERT: it would cost every enqueue a RETURNING. There are no CHECK
    constraints: they would forbid a later version's statuses, and three of them slowed COPY (20,000 rows, best of four:
    0.26 s for 0.21 s, PostgreSQL 15, 2026-11-30).
    """

    __index_roles__: ClassVar[Sequence[IndexRole]] = ()
    __mapper_args__: ClassVar[Any] = {"eager_defaults": False}

    @classmethod
    def __table_cls__(cls, *args: Any, **options: Any) -> Table | None:
        make_table = getattr(super(), "__table_cls__", Table)
        table: Table | None = make_table(*args, **{**table_options(), **options})
        if table is not None:
            complete_table(table, cls.__index_roles__)
        return table
