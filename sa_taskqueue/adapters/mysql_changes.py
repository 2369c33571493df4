"""MySQL and MariaDB: the keys of the rows to change are locked and written down, then all statements join them.

https://dev.mysql.com/doc/refman/8.4/en/create-temporary-table.html, insert-select.html, update.html, delete.html.
MySQL returns no changed rows, MariaDB before 12 none of an UPDATE. CREATE and DROP TEMPORARY TABLE commit nothing;
without the word TEMPORARY a DROP would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column

from sa_taskqueue.adapters.key_tables import CreateKeyTable
from sa_taskqueue.adapters.shapes import KeyTableShape


def key_table(*, returns_inserted: bool) -> KeyTableShape:
    """The shape; MariaDB has INSERT ... RETURNING (10.5)."""
    return KeyTableShape(
        create=lambda keys, rows: CreateKeyTable(keys, rows, "TEMPORARY", primary_key=True),
        drop=lambda keys: f"DROP TEMPORARY TABLE {keys.name}",
        drops_first=False,
        among=_among,
        locks=True,
        returns_inserted=returns_inserted,
        in_two_phase=False,  # error 4091 of MySQL; a temporary table is not part of what XA prepares
    )


def _among(change: Any, pairs: Sequence[tuple[Column[Any], Column[Any]]]) -> Any:
    """By a join: an UPDATE with IN (SELECT ...) reads, and locks, the whole table on MariaDB before 11.1."""
    return change.where(*(column == key for column, key in pairs))
