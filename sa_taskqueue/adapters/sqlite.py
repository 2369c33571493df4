"""SQLite: one writer at a time. A write transaction begins IMMEDIATE, so what it reads nobody else can change."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Float,
    Table,
    bindparam,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import LargeBinary, Text, TypeEngine

from sa_taskqueue.adapters.base import (
    Adapter,
    Seconds,
    after_change,
    at_least,
    bound_inputs,
    changed,
    in_places,
    seconds_expression,
    status_literal,
)
from sa_taskqueue.adapters.derived import Derivation
from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.key_tables import CreateKeyTable
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    ChangeFrom,
    Columns,
    HeldLocked,
    HeldShape,
    HeldTogether,
    Inputs,
    KeyTableShape,
    LockThenUpdate,
    ReturningClaim,
    TakeShape,
)
from sa_taskqueue.adapters.sqlite_derived import SQLiteDerivation
from sa_taskqueue.states import Status

# SQLite's clock has milliseconds; the zeros keep the width, and with it text order equal to time order.
_FORMAT = "%Y-%m-%d %H:%M:%f000"

_KINDS = {
    sqlite3.SQLITE_BUSY: ErrorKind.BUSY,
    sqlite3.SQLITE_LOCKED: ErrorKind.BUSY,
    sqlite3.SQLITE_READONLY: ErrorKind.READ_ONLY,
    sqlite3.SQLITE_FULL: ErrorKind.DISK_FULL,
    sqlite3.SQLITE_PERM: ErrorKind.NO_PRIVILEGE,
    sqlite3.SQLITE_AUTH: ErrorKind.NO_PRIVILEGE,
}
_NOT_NULL = sqlite3.SQLITE_CONSTRAINT_NOTNULL
_UNIQUE = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
_TEXTS = (
    ("no such table", ErrorKind.MISSING_TABLE),
    ("no such column", ErrorKind.MISSING_COLUMN),
    ("has no column named", ErrorKind.MISSING_COLUMN),
    ("could not decode", ErrorKind.UNREADABLE),
)


class _UtcText(sqlite.DATETIME):
    """SQLAlchemy's DATETIME, read as UTC at once: with the zone set afterwards it takes seven times as long."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return _moment


def _moment(value: str | None) -> dt.datetime | None:
    if value is None:
        return None
    try:
        return dt.datetime.fromisoformat(value + "+00:00")
    except ValueError:  # another program's, perhaps with its zone
        return dt.datetime.fromisoformat(value)


class SQLite(Adapter):
    """SQLite 3.35 and later; before, it reads first and updates then, as it has no RETURNING."""

    name: ClassVar[str] = "sqlite"
    worker_isolation: ClassVar[str | None] = None
    single_writer: ClassVar[bool] = True
    loose_types: ClassVar[bool] = True

    def id_type(self) -> TypeEngine[Any]:
        return LargeBinary(16)

    def timestamp_type(self) -> TypeEngine[Any]:
        return _UtcText()  # type: ignore[no-untyped-call]

    def json_type(self) -> TypeEngine[Any]:
        return Text()

    def clock(self) -> ColumnElement[Any]:
        return func.strftime(_text(_FORMAT), _text("now"), type_=self.timestamp_type())

    def after(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved("%+.3f seconds", seconds)

    def ago(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved("%+.3f seconds", -seconds_expression(seconds))

    def seconds_until(self, moment: ColumnElement[Any]) -> ColumnElement[float]:
        days = func.julianday(moment, type_=Float()) - func.julianday(_text("now"), type_=Float())
        return days * literal_column("86400.0", Float())

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        change = changed(table, assignments)
        if at_least(self.version, 3, 35):
            return ReturningClaim(change.where(table.c.id.in_(pick)).returning(*columns))
        lock = pick.with_only_columns(*after_change(columns, assignments))
        return LockThenUpdate(
            lock, change.where(table.c.id.in_(bindparam("ids", type_=self.id_type(), expanding=True)))
        )

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
        change = changed(table, assign(bound_inputs(inputs)) if assign else None).where(these)
        if at_least(self.version, 3, 35):
            # Read and then updated, a batch of 100 took 2.0 ms; together 1.2 (2026-12-01).
            still = (table.c.epoch == bindparam("old_epoch"), table.c.status == status_literal(status))
            return HeldTogether(change.where(*still).returning(table.c.id), tuple(inputs))
        lock = select(table.c.id, table.c.epoch, table.c.status).where(these)
        return HeldLocked(lock, change, tuple(inputs), status=status)

    def at_places(self, rows: AnySelect, first: Column[Any], second: Column[Any]) -> AnySelect | None:
        return in_places(rows, first, second)

    def insert_unless_taken(self, table: Table, column: Column[Any]) -> sqlite.Insert | None:
        if not at_least(self.version, 3, 24):
            return None
        return sqlite.insert(table).on_conflict_do_nothing(index_elements=[column])

    def derivation(self) -> Derivation | None:
        return SQLiteDerivation()

    def key_table(self) -> KeyTableShape | None:
        return KeyTableShape(
            create=lambda keys, rows: CreateKeyTable(keys, rows, "TEMP"),
            drop=lambda keys: f"DROP TABLE IF EXISTS temp.{keys.name}",
            drops_first=True,
            among=_among,
            locks=False,
            returns_inserted=at_least(self.version, 3, 35),
            in_two_phase=True,
        )

    def insert_or_change(self, table: Table, column: Column[Any], change: ChangeFrom) -> sqlite.Insert | None:
        statement = sqlite.insert(table)
        assignments = {each.key: value for each, value in change(statement.excluded)}
        return statement.on_conflict_do_update(index_elements=[column], set_=assignments)

    def begin(self, connection: Connection) -> None:
        # Left to itself the driver begins at the first write, which may fail with BUSY_SNAPSHOT after a read.
        # A prepared engine begins in its own event.
        if not connection.in_transaction():
            connection.begin()
        driver = connection.connection.driver_connection
        if not getattr(driver, "in_transaction", False):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def worker_settings(self) -> Sequence[str]:
        # The engines we prepare wait 30 s, for the user's transactions; a worker gives up sooner and tries again.
        return ("PRAGMA busy_timeout = 5000",)

    def private_to_connection(self, url: URL) -> bool:
        database = url.database or ""
        shared = "cache=shared" in database or url.query.get("cache") == "shared"
        memory = database in ("", ":memory:", "file::memory:") or "mode=memory" in database
        return memory and not shared

    def file_of(self, url: URL) -> str | None:
        database = (url.database or "").removeprefix("file:").partition("?")[0]
        return None if not database or database == ":memory:" or "mode=memory" in str(url) else database

    def classify_driver(self, error: BaseException) -> ErrorKind:
        original = driver_error(error)
        code = getattr(original, "sqlite_errorcode", None)
        if code in _UNIQUE:
            return ErrorKind.UNIQUE
        if code == _NOT_NULL:
            return ErrorKind.NULL
        if isinstance(code, int) and (code & 0xFF) in _KINDS:
            return _KINDS[code & 0xFF]
        message = str(original).lower()
        return next((kind for text, kind in _TEXTS if text in message), ErrorKind.OTHER)

    def _moved(self, form: str, seconds: Seconds) -> ColumnElement[Any]:
        modifier = func.printf(_text(form), seconds_expression(seconds))
        return func.strftime(_text(_FORMAT), _text("now"), modifier, type_=self.timestamp_type())


def _text(value: str) -> ColumnElement[str]:
    """A text as a part of the SQL, not a parameter."""
    return literal_column(f"'{value}'", Text())


def _among(change: Any, pairs: Sequence[tuple[Column[Any], Column[Any]]]) -> Any:
    """SQLite's DELETE joins no table; both statements take the keys as a list."""
    columns, keys = zip(*pairs, strict=True)
    if len(columns) == 1:
        return change.where(columns[0].in_(select(keys[0])))
    return change.where(tuple_(*columns).in_(select(*keys)))
