"""Claiming one row at a time, after the driver itself failed on a row of a claim.

Most bad values are noticed when a row is converted, which fails that row alone. A driver that raises while it fetches
(text that is not UTF-8 on SQLite, an infinite timestamp on PostgreSQL) says neither which row it was nor gives the
others. The transaction is rolled back by the caller; the next claim of the queue comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.shapes import AnySelect, TakeShape
from sa_taskqueue.store.fetching import skip_locked_first
from sa_taskqueue.store.reading import Unreadable, raw
from sa_taskqueue.store.running import Values, take


class CarefulClaim:
    """Takes row by row, each in a savepoint, and has `fail` end those that cannot be fetched."""

    def __init__(
        self,
        table: Table,
        adapter: Adapter,
        due: AnySelect,
        shape: TakeShape,
        fail: Callable[[Connection, Unreadable], None],
    ) -> None:
        self._adapter = adapter
        self._shape = shape
        self._due = due.with_only_columns(raw(table.c.id))
        self._fail = fail

    def take(self, connection: Connection, values: Values) -> list[Any]:
        """The rows that can be fetched, out of as many as the claim may take."""
        rows: list[Any] = []
        for _ in range(values["at_most"]):
            one = {**values, "at_most": 1}
            savepoint = connection.begin_nested()
            try:
                found = take(connection, self._shape, one)
            except (DBAPIError, ValueError) as error:
                savepoint.rollback()
                if not self.is_unreadable(error):
                    raise
                self._fail_first(connection, one, error)
                continue
            savepoint.commit()
            if not found:
                break
            rows.extend(found)
        return rows

    def is_unreadable(self, error: Exception) -> bool:
        """Whether the error is about a value, so that another row may do."""
        return self._adapter.classify(error) is ErrorKind.UNREADABLE

    def _fail_first(self, connection: Connection, one: Values, error: Exception) -> None:
        for [raw_id] in skip_locked_first(connection, self._adapter, self._due, one, rows=1):
            self._fail(connection, Unreadable(raw_id, f"{type(error).__name__}: {driver_error(error)}"))
