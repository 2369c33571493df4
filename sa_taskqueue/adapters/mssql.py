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

import datetime as dt
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Dialect,
    Float,
    Integer,
    Table,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import mssql
from sqlalchemy.sql import operators
from sqlalchemy.sql.selectable import _OffsetLimitParam
from sqlalchemy.sql.util import ClauseAdapter
from sqlalchemy.types import TypeDecorator, TypeEngine

from sa_taskqueue.adapters.base import Adapter, Seconds, bound_inputs, changed, seconds_expression
from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.partial import IndexedRows
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

# https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors; from 20002 to
# 20047 FreeTDS, which is under pymssql; 40197 to 49920 Azure SQL, under load or while it moves a database.
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
    1101: ErrorKind.DISK_FULL,
    1105: ErrorKind.DISK_FULL,
    9002: ErrorKind.DISK_FULL,
    **dict.fromkeys((596, 6005, 10053, 10054, 10060, 40197, 40501, 40613, 49918, 49919, 49920), ErrorKind.DISCONNECT),
    **dict.fromkeys((20002, 20003, 20004, 20006, 20009, 20017, 20047), ErrorKind.DISCONNECT),
}

_LOST = ("08", "IMC")
"""SQLSTATE of ODBC, all of class 08, and those of a connection that could not be resumed."""

_WAITING = "WITH (UPDLOCK, ROWLOCK)"
_SKIPPING = "UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK"

_PREPARER = mssql.dialect().identifier_preparer  # type: ignore[no-untyped-call]

_NUMBER = re.compile(r"\((\d+)\) \(SQL\w+\)")
"""Where ODBC has the server's number in its message: ``... (1205) (SQLExecDirectW)``."""


class Moment(TypeDecorator[dt.datetime]):
    """``DATETIME2(6)``, bound as text: pymssql cuts a datetime to milliseconds, and a row would be behind itself."""

    impl = mssql.DATETIME2
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(6)

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> Any:
        return None if value is None else value.isoformat(timespec="microseconds")

    def bind_expression(self, bindparam: BindParameter[Any]) -> ColumnElement[Any]:
        return cast(bindparam, mssql.DATETIME2(6))  # type: ignore[no-untyped-call]

    def get_dbapi_type(self, dbapi: Any) -> None:
        """Text, as far as the driver is concerned."""


class SQLServer(Adapter):
    """SQL Server 2016 and later: before, the clock's distance to a moment has no microseconds."""

    name: ClassVar[str] = "mssql"
    longest_list: ClassVar[int | None] = 1000
    reservations: ClassVar[frozenset[str]] = frozenset({"lease", "row-lock"})

    def id_type(self) -> TypeEngine[Any]:
        return mssql.BINARY(16)

    def timestamp_type(self) -> TypeEngine[Any]:
        return Moment()

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

    def by_index(self, pick: AnySelect, table: Table, index: str) -> AnySelect:
        # Of a small table the server reads the clustered index and sorts, which locks every due row for one claim. Only
        # where the filter is word for word a condition of the query: else the server may refuse the hint (8622).
        found = next((one for one in table.indexes if one.name == index), None)
        rows = found.kwargs.get("mssql_where") if found is not None else None
        exact = isinstance(rows, IndexedRows) and getattr(rows.condition, "operator", None) is operators.eq
        if not exact or "%" in index:  # the drivers differ in how a hint says a percent sign
            return pick
        return pick.with_hint(table, f"WITH (INDEX({_PREPARER.quote(index)}))", "mssql")

    def skip_locked(self, pick: AnySelect, *, keys_stay: bool = False) -> AnySelect:
        for table in pick.get_final_froms():
            hinted = pick._hints.get((table, "mssql"), "WITH ()")  # noqa: SLF001 - a second hint replaces the first
            indexed = hinted.removeprefix("WITH (").removesuffix(")")
            hints = ", ".join(filter(None, (indexed, _SKIPPING)))
            pick = pick.with_hint(table, f"WITH ({hints})", "mssql")
        return pick

    def worker_settings(self) -> Sequence[str]:
        # Milliseconds; the default is to wait for ever. XACT_ABORT would undo the transaction for a taken key.
        return ("SET LOCK_TIMEOUT 2000", "SET XACT_ABORT OFF")

    def classify_driver(self, error: BaseException) -> ErrorKind:
        return _KINDS.get(_number(driver_error(error)), ErrorKind.OTHER)

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


def _number(error: BaseException) -> int:
    """The number of the server or of FreeTDS; 10054 for a connection that ODBC calls lost; 0 where there is none."""
    first = next(iter(error.args), None)
    if isinstance(first, tuple):  # pymssql, while it connects
        first = next(iter(first), None)
    if isinstance(first, int):
        return first
    if isinstance(first, str) and first.startswith(_LOST):
        return 10054
    found = _NUMBER.search(str(error))
    return int(found[1]) if found else 0
