"""SQL Server 2016 and later, and Azure SQL. Pinned by golden SQL; never run on a server by the tests.

``READPAST`` leaves out rows that others have locked, ``UPDLOCK`` keeps two readers off the same row, ``ROWLOCK`` asks
for locks of rows and not of pages, which would hide their neighbours. ``READCOMMITTEDLOCK`` reads with locks also where
the database has READ_COMMITTED_SNAPSHOT: ``READPAST`` is refused on row versions. The claim is an update of a CTE,
which touches the table once: a join of the table with what was picked may lock, and wait for, any row of it.

The order in which a CTE with ``TOP`` takes its locks is that of its index; lists of ids are locked in the order of the
primary key before they are changed. Lists end at 1,000: a statement takes 2,100 parameters, and from about 5,000 locks
on the server takes one of the whole table instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Float, Integer, Table, bindparam, cast, func, literal_column, select, update
from sqlalchemy.dialects import mssql
from sqlalchemy.sql.selectable import _OffsetLimitParam
from sqlalchemy.sql.util import ClauseAdapter
from sqlalchemy.types import TypeEngine

from sa_taskqueue.adapters.base import Adapter, Seconds, bound_inputs, changed, seconds_expression
from sa_taskqueue.adapters.errors import ErrorKind, driver_error, error_number
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    Columns,
    HeldLocked,
    HeldShape,
    Inputs,
    ReturningClaim,
    TakeShape,
)
from sa_taskqueue.states import Status

# https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
_KINDS = {
    1205: ErrorKind.DEADLOCK,
    3960: ErrorKind.SERIALIZATION,
    1222: ErrorKind.LOCK_TIMEOUT,
    2601: ErrorKind.UNIQUE,
    2627: ErrorKind.UNIQUE,
    208: ErrorKind.MISSING_TABLE,
    207: ErrorKind.MISSING_COLUMN,
    3906: ErrorKind.READ_ONLY,
    229: ErrorKind.NO_PRIVILEGE,
    230: ErrorKind.NO_PRIVILEGE,
    1105: ErrorKind.DISK_FULL,
    9002: ErrorKind.DISK_FULL,
    596: ErrorKind.DISCONNECT,
    6005: ErrorKind.DISCONNECT,
    10053: ErrorKind.DISCONNECT,
    10054: ErrorKind.DISCONNECT,
    10060: ErrorKind.DISCONNECT,
    20002: ErrorKind.DISCONNECT,
    20003: ErrorKind.DISCONNECT,
    20004: ErrorKind.DISCONNECT,
    20006: ErrorKind.DISCONNECT,
    20009: ErrorKind.DISCONNECT,
    20047: ErrorKind.DISCONNECT,
    40197: ErrorKind.DISCONNECT,
    40501: ErrorKind.DISCONNECT,
    40613: ErrorKind.DISCONNECT,
}

_WAITING = "WITH (UPDLOCK, ROWLOCK)"
_SKIPPING = "WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)"

_NUMBER = re.compile(r"\((\d+)\) \(SQL\w+\)")
"""Where ODBC has the server's number in its message: ``... (1205) (SQLExecDirectW)``."""


class SQLServer(Adapter):
    """SQL Server 2016 and later: before, the clock's distance to a moment has no microseconds."""

    name: ClassVar[str] = "mssql"
    longest_list: ClassVar[int | None] = 1000
    reservations: ClassVar[frozenset[str]] = frozenset({"lease", "row-lock"})

    def id_type(self) -> TypeEngine[Any]:
        return mssql.BINARY(16)

    def timestamp_type(self) -> TypeEngine[Any]:
        return mssql.DATETIME2(6)  # type: ignore[no-untyped-call]

    def json_type(self) -> TypeEngine[Any]:
        return mssql.NVARCHAR()

    def hash_type(self) -> TypeEngine[Any]:
        return mssql.BINARY(32)

    def clock(self) -> ColumnElement[Any]:
        return func.sysutcdatetime(type_=self.timestamp_type())

    def after(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved(seconds_expression(seconds))

    def ago(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved(-seconds_expression(seconds))

    def seconds_until(self, moment: ColumnElement[Any]) -> ColumnElement[float]:
        microseconds = func.datediff_big(literal_column("MICROSECOND"), self.clock(), moment, type_=Float())
        return microseconds * literal_column("1e-6", Float())

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        picked = self.skip_locked(_top(pick).with_only_columns(*table.c)).cte("picked")
        as_picked = ClauseAdapter(picked)
        change = update(picked).ordered_values(
            *((picked.c[column.key], as_picked.traverse(value)) for column, value in assignments)
        )
        return ReturningClaim(change.returning(*(as_picked.traverse(column) for column in columns)))

    def take_locks(self, table: Table, due: AnySelect, columns: Columns) -> TakeShape:
        return ReturningClaim(self.skip_locked(_top(due).with_only_columns(*columns)))

    def held(
        self,
        table: Table,
        assign: AssignFrom | None,
        inputs: Inputs,
        *,
        wait: bool = True,
        status: StrEnum = Status.RUNNING,
    ) -> HeldShape:
        these = table.c.id.in_(bindparam("ids", expanding=True))
        rows = select(table.c.id, table.c.epoch, table.c.status).where(these).order_by(table.c.id)
        change = changed(table, assign(bound_inputs(inputs)) if assign else None).where(these)
        lock = rows.with_hint(table, _WAITING, "mssql") if wait else self.skip_locked(rows)
        return HeldLocked(lock, change, tuple(inputs), longest=self.longest_list, status=status)

    def lock(self, table: Table) -> AnySelect | None:
        these = table.c.id.in_(bindparam("ids", expanding=True))
        return select(table.c.id).where(these).order_by(table.c.id).with_hint(table, _WAITING, "mssql")

    def skip_locked(self, pick: AnySelect, *, keys_stay: bool = False) -> AnySelect:
        for table in pick.get_final_froms():
            pick = pick.with_hint(table, _SKIPPING, "mssql")
        return pick

    def worker_settings(self) -> Sequence[str]:
        # Milliseconds; the default is to wait for ever. XACT_ABORT would undo the transaction for a taken key.
        return ("SET LOCK_TIMEOUT 2000", "SET XACT_ABORT OFF")

    def classify_driver(self, error: BaseException) -> ErrorKind:
        original = driver_error(error)
        number = error_number(original)
        if number is None:
            if str(next(iter(original.args), "")).startswith("08"):  # SQLSTATE, from ODBC
                return ErrorKind.DISCONNECT
            found = _NUMBER.search(str(original))
            number = int(found[1]) if found else 0
        return _KINDS.get(number, ErrorKind.OTHER)

    def _moved(self, seconds: ColumnElement[float]) -> ColumnElement[Any]:
        """In two steps: DATEADD takes 32 bits, which are 35 minutes in microseconds."""
        exact = cast(seconds, Float(53))
        whole = cast(func.floor(exact), Integer())
        rest = cast((exact - func.floor(exact)) * literal_column("1e6", Float()), Integer())
        to_the_second = func.dateadd(literal_column("SECOND"), whole, self.clock())
        return func.dateadd(literal_column("MICROSECOND"), rest, to_the_second, type_=self.timestamp_type())


def _top(pick: AnySelect) -> AnySelect:
    """The limit by its own class of parameter: SQLAlchemy writes TOP for that, and OFFSET ... FETCH for any other."""
    return pick.limit(_OffsetLimitParam("at_most", type_=Integer()))
