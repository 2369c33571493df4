"""MySQL: lock and read, then change by primary key, at READ COMMITTED.

``UPDATE ... ORDER BY ... LIMIT`` waits for other claims, and REPEATABLE READ locks the gaps that producers insert into.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Dialect,
    Float,
    Integer,
    String,
    Table,
    bindparam,
    column,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import BINARY, TypeEngine

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
from sa_taskqueue.adapters.errors import ErrorKind, driver_error, error_number
from sa_taskqueue.adapters.mysql_changes import key_table
from sa_taskqueue.adapters.mysql_derived import MySQLDerivation
from sa_taskqueue.adapters.mysql_holds import reservation_rows, session_locks
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    ChangeFrom,
    Columns,
    HeldLocked,
    HeldShape,
    Inputs,
    KeyTableShape,
    LockThenUpdate,
    PatienceShape,
    ReadThenLock,
    ReservationShape,
    SessionLockShape,
    TakeShape,
)
from sa_taskqueue.states import Status

LOCK_WINDOW = 32
"""Due tasks read to lock the first free one of them. Those held by row locks stand in front, so it is about as many as
a few workers run at once; with more the next window is read. Among tasks of one priority in it, the order is by id."""

_KINDS = {
    1213: ErrorKind.DEADLOCK,
    1020: ErrorKind.SERIALIZATION,
    1205: ErrorKind.LOCK_TIMEOUT,
    3572: ErrorKind.LOCK_TIMEOUT,
    3024: ErrorKind.LOCK_TIMEOUT,
    1969: ErrorKind.LOCK_TIMEOUT,
    1062: ErrorKind.UNIQUE,
    1048: ErrorKind.NULL,
    1146: ErrorKind.MISSING_TABLE,
    1054: ErrorKind.MISSING_COLUMN,
    1290: ErrorKind.READ_ONLY,
    1792: ErrorKind.READ_ONLY,
    1836: ErrorKind.READ_ONLY,
    1044: ErrorKind.NO_PRIVILEGE,
    1142: ErrorKind.NO_PRIVILEGE,
    1143: ErrorKind.NO_PRIVILEGE,
    1021: ErrorKind.DISK_FULL,
    1114: ErrorKind.DISK_FULL,
    1040: ErrorKind.DISCONNECT,
    1053: ErrorKind.DISCONNECT,
    1927: ErrorKind.DISCONNECT,
    2002: ErrorKind.DISCONNECT,
    2003: ErrorKind.DISCONNECT,
    2006: ErrorKind.DISCONNECT,
    2013: ErrorKind.DISCONNECT,
    4031: ErrorKind.DISCONNECT,
}


class MySQLTypes(Adapter):
    """What every version has: types, clock, errors. Alone it serves the versions before SKIP LOCKED."""

    name: ClassVar[str] = "mysql"
    lists_may_scan: ClassVar[bool] = True
    locks_behind_last: ClassVar[bool] = True

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        mariadb = bool(getattr(dialect, "is_mariadb", False))
        self._expression_defaults = mariadb or at_least(self.version, 8, 0, 13)

    def id_type(self) -> TypeEngine[Any]:
        return BINARY(16)

    def timestamp_type(self) -> TypeEngine[Any]:
        return mysql.DATETIME(fsp=6)

    def json_type(self) -> TypeEngine[Any]:
        return mysql.LONGTEXT()

    def hash_type(self) -> TypeEngine[Any]:
        return BINARY(32)

    def clock(self) -> ColumnElement[Any]:
        return literal_column("UTC_TIMESTAMP(6)", self.timestamp_type())

    def clock_default(self) -> str:
        # Expressions came with 8.0.13 (https://dev.mysql.com/doc/refman/8.0/en/data-type-defaults.html). Before, this
        # is the only clock that a default may be; it is UTC where the time zone is.
        return "" if self._expression_defaults else "CURRENT_TIMESTAMP(6)"

    def after(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved(seconds_expression(seconds))

    def ago(self, seconds: Seconds) -> ColumnElement[Any]:
        return self._moved(-seconds_expression(seconds))

    def seconds_until(self, moment: ColumnElement[Any]) -> ColumnElement[float]:
        microseconds = func.timestampdiff(literal_column("MICROSECOND"), self.clock(), moment, type_=Float())
        return microseconds / literal_column("1e6", Float())

    def derivation(self) -> Derivation | None:
        return MySQLDerivation()

    def key_table(self) -> KeyTableShape | None:
        return key_table(returns_inserted=False)

    def insert_or_change(self, table: Table, column: Column[Any], change: ChangeFrom) -> mysql.Insert | None:
        # In this order: an assignment sees the earlier ones.
        statement = mysql.insert(table)
        assignments = [(each.key, value) for each, value in change(statement.inserted)]
        return statement.on_duplicate_key_update(assignments)

    def try_lock(self, name: str) -> AnySelect | None:
        return select(func.get_lock(_lock_name(name), 0))

    def unlock(self, name: str) -> AnySelect | None:
        return select(func.release_lock(_lock_name(name)))

    def narrow_columns(self, table: str, schema: str | None) -> AnySelect | None:
        charset: ColumnElement[str] = column("character_set_name")
        return (
            select(column("column_name"), charset)
            .select_from(text("information_schema.columns"))
            .where(column("table_name") == table, column("table_schema") == (schema or func.database()))
            .where(charset != "utf8mb4")
        )

    def worker_settings(self) -> Sequence[str]:
        # The default is 50 s; a worker that waits so long for one row lets all its leases lapse.
        return ("SET SESSION innodb_lock_wait_timeout = 2",)

    def classify_driver(self, error: BaseException) -> ErrorKind:
        number = error_number(driver_error(error))
        return ErrorKind.OTHER if number is None else _KINDS.get(number, ErrorKind.OTHER)

    def _moved(self, seconds: ColumnElement[float]) -> ColumnElement[Any]:
        microseconds = func.round(seconds * literal_column("1e6", Float()))
        return func.timestampadd(literal_column("MICROSECOND"), microseconds, self.clock(), type_=self.timestamp_type())


class MySQL(MySQLTypes):
    """MySQL 8 and later."""

    reservations: ClassVar[frozenset[str]] = frozenset({"lease", "row-lock", "advisory-lock", "reservation-table"})

    def lock_patience(self) -> PatienceShape:
        return PatienceShape(
            read=text("SELECT @@SESSION.innodb_lock_wait_timeout"),
            set=text("SET SESSION innodb_lock_wait_timeout = :patience"),
            of_seconds=int,
        )

    def session_locks(self) -> SessionLockShape:
        return session_locks()

    def reservation_rows(self, table: Table) -> ReservationShape:
        return reservation_rows(table, self)

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        lock = pick.with_only_columns(*after_change(columns, assignments)).with_for_update(skip_locked=True)
        these = table.c.id.in_(bindparam("ids", type_=self.id_type(), expanding=True))
        change = changed(table, assignments).where(these)
        return LockThenUpdate(lock, change)

    def take_locks(self, table: Table, due: AnySelect, columns: Columns) -> TakeShape:
        # By the primary key. A locking read by another index leaves a row out that somebody has locked, but keeps the
        # row's entry in the index locked: for a claim's moment that does no harm, for a handler's time it hid the task
        # from everybody (MySQL 9.7, MariaDB 10.11, 2026-12-01).
        candidates = due.with_only_columns(table.c.id, table.c.priority).offset(bindparam("passed", type_=Integer()))
        these = select(*columns).where(
            table.c.id.in_(bindparam("ids", expanding=True)),
            table.c.queue == bindparam("of_queue", type_=String()),
            table.c.status == status_literal(Status.NEW),
        )
        first = these.order_by(table.c.id).limit(bindparam("at_most", type_=Integer()))
        return ReadThenLock(candidates, self.skip_locked(_forced(first, table, "PRIMARY")), LOCK_WINDOW)

    def by_index(self, pick: AnySelect, table: Table, index: str) -> AnySelect:
        # Left to itself with 10 rows, or with 1,500 before ANALYZE, it sorted all of the queue, and locked it
        # (MySQL 9.7, MariaDB 10.11, 2026-11-30).
        return _forced(pick, table, index) if any(found.name == index for found in table.indexes) else pick

    def skip_locked(self, pick: AnySelect, *, keys_stay: bool = False) -> AnySelect:
        return pick.with_for_update(skip_locked=True)

    def at_places(self, rows: AnySelect, first: Column[Any], second: Column[Any]) -> AnySelect | None:
        return in_places(rows, first, second)

    def lock(self, table: Table) -> AnySelect | None:
        return _these(table).with_for_update()

    def held(
        self,
        table: Table,
        assign: AssignFrom | None,
        inputs: Inputs,
        *,
        wait: bool = True,
        status: StrEnum = Status.RUNNING,
    ) -> HeldShape:
        lock = _these(table).with_for_update(skip_locked=not wait)
        if assign is None:
            # By a list it waited for rows it does not name (MySQL 9.7, MariaDB 10.11, 2026-11-30): an UPDATE that reads
            # the whole of a small table passes locked rows by at READ COMMITTED, a DELETE does not.
            return HeldLocked(
                lock, changed(table, None).where(table.c.id == bindparam("old_id")), (), by_list=False, status=status
            )
        change = changed(table, assign(bound_inputs(inputs)))
        these = table.c.id.in_(bindparam("ids", expanding=True))
        return HeldLocked(lock, change.where(these), tuple(inputs), status=status)


def _these(table: Table) -> AnySelect:
    """The rows ``ids``, locked in this order and no others: hence the index by name and no condition on the status."""
    rows = select(table.c.id, table.c.epoch, table.c.status).where(table.c.id.in_(bindparam("ids", expanding=True)))
    return _forced(rows.order_by(table.c.id), table, "PRIMARY")


def _forced(pick: AnySelect, table: Table, index: str) -> AnySelect:
    # Nobody quotes the names in a hint. A percent sign is formatted twice, by SQLAlchemy and by the driver.
    quoted = index.replace("`", "``").replace("%", "%%%%")
    hint = f"FORCE INDEX (`{quoted}`)"
    return pick.with_hint(table, hint, "mysql").with_hint(table, hint, "mariadb")


def _lock_name(name: str) -> ColumnElement[str]:
    """56 characters of the 64 that a name may have; locks belong to the server, hence the name of the database."""
    return func.sha2(func.concat(func.coalesce(func.database(), ""), ":", name), 224)
