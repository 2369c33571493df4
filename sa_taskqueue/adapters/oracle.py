"""Oracle 19c and later. Pinned by golden SQL and the rules of Oracle's pages; never run on a server by the tests.

``FOR UPDATE`` is refused beside ``FETCH FIRST`` (ORA-02014), and ``ROWNUM`` counts before locked rows are skipped. But
with ``SKIP LOCKED`` a row is locked when it is fetched: so a cursor without a limit is read for exactly as many rows as
are wanted, and closed. The driver must not fetch ahead: `bound_fetch`. The cursor sees the table as it was when it was
opened, so the rows are read again, with the same conditions, once they are locked.

Moments are ``TIMESTAMP(6)`` in UTC, not ``WITH TIME ZONE``: python-oracledb drops the zone of an aware datetime, which
is then stored in the session's zone (python-oracledb #414), and the server indexes such a column as an expression.

JSON is ``CLOB`` in every version, so that upgrading the server changes no table. '' is NULL: neither JSON nor a name
is ever empty.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar, cast

from sqlalchemy import (
    Case,
    Column,
    ColumnElement,
    Float,
    Interval,
    Table,
    Text,
    bindparam,
    case,
    extract,
    func,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.dialects import oracle
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex
from sqlalchemy.sql.compiler import DDLCompiler, GenericTypeCompiler
from sqlalchemy.sql.visitors import replacement_traverse
from sqlalchemy.types import TypeDecorator, TypeEngine

from sa_taskqueue.adapters.base import Adapter, Seconds, after_change, bound_inputs, changed, seconds_expression
from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.partial import IndexedRows
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    Columns,
    FetchThenUpdate,
    HeldLocked,
    HeldShape,
    Inputs,
    TakeShape,
)
from sa_taskqueue.states import Status

# https://docs.oracle.com/en/error-help/db/ for ORA. python-oracledb says DPY-4011 instead of ORA-00028, 03113, 03114,
# 03135 and their like, in thin mode and in thick (its errors.py); before there is a connection, the code as it is.
_CODES = {
    ErrorKind.DEADLOCK: "ORA-00060",
    ErrorKind.SERIALIZATION: "ORA-08177 ORA-01555",
    # 02049: over a database link; 04021: a lock of the dictionary. DPY-4024, DPI-1067: `Connection.call_timeout`.
    ErrorKind.LOCK_TIMEOUT: "ORA-00054 ORA-30006 ORA-02049 ORA-04021 DPY-4024 DPI-1067",
    ErrorKind.UNIQUE: "ORA-00001",
    ErrorKind.MISSING_TABLE: "ORA-00942",
    ErrorKind.MISSING_COLUMN: "ORA-00904",
    # 12081: ALTER TABLE ... READ ONLY.
    ErrorKind.READ_ONLY: "ORA-01456 ORA-12081 ORA-16000",
    ErrorKind.NO_PRIVILEGE: "ORA-01031 ORA-01950 ORA-41900",
    ErrorKind.DISK_FULL: "ORA-01536 ORA-01652 ORA-01653 ORA-01654 ORA-01691 ORA-30036 ORA-00257",
    ErrorKind.DISCONNECT: (
        "ORA-00018 ORA-00020 ORA-00028 ORA-01012 ORA-01033 ORA-01034 ORA-01089 ORA-01090 ORA-01092 ORA-02396 ORA-03113"
        " ORA-03114 ORA-03135 ORA-12170 ORA-12505 ORA-12514 ORA-12516 ORA-12518 ORA-12519 ORA-12520 ORA-12528 ORA-12537"
        " ORA-12541 ORA-12543 ORA-12547 ORA-12570 ORA-25402 ORA-25408"
        " DPY-1001 DPY-4011 DPY-4033 DPY-6000 DPY-6001 DPY-6003 DPY-6005 DPI-1010 DPI-1080"
    ),
}
_KINDS = {code: kind for kind, codes in _CODES.items() for code in codes.split()}

_WAIT = "FOR UPDATE WAIT 2"
"""Seconds. Without it a worker waits for ever for one row, and lets all its leases lapse."""

_MAY_BE_SCALAR = ("payload", "result")
"""The columns whose JSON need not be an object or array: before 21c ``IS JSON`` is false for 42."""


_PREPARER = oracle.dialect().identifier_preparer  # type: ignore[no-untyped-call]


class CheckedJson(Text):
    """A ``CLOB`` that refuses what is not JSON."""


class BoundClob(TypeDecorator[str]):
    """A parameter that is bound as a CLOB: as text it could not be longer than 32,767 bytes in an expression."""

    impl = Text
    cache_ok = True

    def get_dbapi_type(self, dbapi: Any) -> Any:
        return dbapi.CLOB


@compiles(CheckedJson)
def _compile_json(_type: CheckedJson, compiler: GenericTypeCompiler, **options: Any) -> str:
    column: Column[Any] | None = options.get("type_expression")
    if column is None or column.name in _MAY_BE_SCALAR:
        return "CLOB"
    return f"CLOB CHECK ({compiler.dialect.identifier_preparer.format_column(column)} IS JSON (STRICT))"


@compiles(CreateIndex, "oracle")
def _compile_index(create: CreateIndex, compiler: DDLCompiler, **options: Any) -> str:
    """A row whose keys are all NULL is in no B-tree index: so each column of a partial index is a CASE expression."""
    index = create.element
    text: str = compiler.visit_create_index(create, **options)  # type: ignore[no-untyped-call]
    if not isinstance(rows := index.kwargs.get("postgresql_where"), IndexedRows):
        return text
    keys = [_indexed(column, rows) for column in index.columns]
    listed = ", ".join(compiler.sql_compiler.process(key, include_table=False, literal_binds=True) for key in keys)
    return f"{text.rpartition(' (')[0]} ({listed})"


def _indexed(column: ColumnElement[Any], rows: IndexedRows) -> ColumnElement[Any]:
    """The column as it stands in the index; a query that does not say it so does not use the index."""
    return case((rows.condition, column))


def _by_columns(pick: AnySelect, table: Table) -> ColumnElement[bool] | None:
    """The conditions of ``pick`` as they were before `Oracle.by_index`: a read by id is to use no other index."""
    if (conditions := pick.whereclause) is None:
        return None
    rows = (index.kwargs.get("postgresql_where") for index in table.indexes)
    keys = [(_indexed(column, each), column) for each in rows if isinstance(each, IndexedRows) for column in table.c]

    def plain(element: Any, **_: Any) -> ColumnElement[Any] | None:
        if not isinstance(element, Case):
            return None
        return next((column for key, column in keys if key.compare(element)), None)

    return cast("ColumnElement[bool]", replacement_traverse(conditions, {}, plain))


_SECONDS_IN = {"day": "86400", "hour": "3600", "minute": "60", "second": "1"}


class Oracle(Adapter):
    """Oracle 19c, 21c, 23ai, 26ai, through python-oracledb."""

    name: ClassVar[str] = "oracle"
    longest_list: ClassVar[int | None] = 1000  # ORA-01795 for more, before 23ai
    locks_when_fetched: ClassVar[bool] = True
    reservations: ClassVar[frozenset[str]] = frozenset({"lease", "row-lock"})

    def id_type(self) -> TypeEngine[Any]:
        return oracle.RAW(16)

    def timestamp_type(self) -> TypeEngine[Any]:
        return oracle.TIMESTAMP()  # its precision is 6 where none is given

    def json_type(self) -> TypeEngine[Any]:
        return CheckedJson()

    def hash_type(self) -> TypeEngine[Any]:
        return oracle.RAW(32)

    def clock(self) -> ColumnElement[Any]:
        return func.sys_extract_utc(literal_column("SYSTIMESTAMP"), type_=self.timestamp_type())

    def after(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved(seconds_expression(seconds))

    def ago(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved(-seconds_expression(seconds))

    def seconds_until(self, moment: ColumnElement[Any]) -> ColumnElement[float]:
        wait = (moment - self.clock()).self_group()
        parts: list[ColumnElement[Any]] = [
            extract(field, wait) * literal_column(factor, Float()) for field, factor in _SECONDS_IN.items()
        ]
        return functools.reduce(operator.add, parts)

    def json(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return func.to_clob(type_coerce(text, BoundClob()), type_=Text())

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        locked = self.take_locks(table, pick, after_change(columns, assignments))
        return replace(locked, change=changed(table, assignments).where(_these(table, self.id_type())))

    def take_locks(self, table: Table, due: AnySelect, columns: Columns) -> FetchThenUpdate:
        cursor = self.skip_locked(due.with_only_columns(columns[0]))
        still = _by_columns(due, table)
        conditions = (_these(table, self.id_type()), *([] if still is None else [still]))
        return FetchThenUpdate(cursor, select(*columns).where(*conditions), None, self.bound_fetch)

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
        lock = rows.suffix_with(_WAIT) if wait else rows.with_for_update(skip_locked=True)
        change = changed(table, assign(bound_inputs(inputs)) if assign else None).where(these)
        return HeldLocked(lock, change, tuple(inputs), longest=self.longest_list, status=status)

    def lock(self, table: Table) -> AnySelect | None:
        these = table.c.id.in_(bindparam("ids", expanding=True))
        return select(table.c.id).where(these).order_by(table.c.id).suffix_with(_WAIT)

    def by_index(self, pick: AnySelect, table: Table, index: str) -> AnySelect:
        found = next((one for one in table.indexes if one.name == index), None)
        rows = found.kwargs.get("postgresql_where") if found is not None else None
        if found is None or not isinstance(rows, IndexedRows):
            return pick
        keys = {column: _indexed(column, rows) for column in found.columns}
        rewritten = cast("AnySelect", replacement_traverse(pick, {}, lambda element, **_: keys.get(element)))
        hint = f"INDEX_ASC({_quoted(table.name)} {_quoted(index)})"
        return rewritten.with_only_columns(*pick.selected_columns).with_hint(table, hint, "oracle")

    def skip_locked(self, pick: AnySelect, *, keys_stay: bool = False) -> AnySelect:
        return pick.limit(None).with_for_update(skip_locked=True)

    def bound_fetch(self, cursor: Any, rows: int) -> None:
        # The first round trip brings `prefetchrows` rows, the next `arraysize` (thin mode), or what is missing of it
        # (thick mode): python-oracledb #218. SQLAlchemy's async cursor has the driver's inside.
        driver = getattr(cursor, "_cursor", cursor)
        driver.prefetchrows = driver.arraysize = rows

    def classify_driver(self, error: BaseException) -> ErrorKind:
        # python-oracledb's exceptions carry one object; cx_Oracle's, too, but without `full_code`.
        details = next(iter(driver_error(error).args), None)
        code = getattr(details, "full_code", None) or str(details).partition(":")[0]
        return _KINDS.get(code, ErrorKind.OTHER)

    def _moved(self, seconds: ColumnElement[float]) -> ColumnElement[Any]:
        return self.clock() + func.numtodsinterval(seconds, literal_column("'SECOND'"), type_=Interval())


def _these(table: Table, type_: TypeEngine[Any]) -> ColumnElement[bool]:
    return table.c.id.in_(bindparam("ids", type_=type_, expanding=True))


def _quoted(name: str) -> str:
    return _PREPARER.quote(name)
