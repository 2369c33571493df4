"""PostgreSQL: one statement per operation, a MATERIALIZED CTE around the locked rows.

A plain ``IN (SELECT ... LIMIT n FOR UPDATE)`` may be planned so that it locks the whole queue. ``FOR NO KEY UPDATE``,
because a child row inserted in an open transaction (a foreign key to the task) hides the task from ``FOR UPDATE``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    CTE,
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    Float,
    Integer,
    Interval,
    SmallInteger,
    String,
    Table,
    and_,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP, UUID, Insert, insert
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import LargeBinary, TypeEngine

from sa_taskqueue.adapters.base import Adapter, Seconds, at_least, changed, lock_key, seconds_expression, status_literal
from sa_taskqueue.adapters.derived import Derivation
from sa_taskqueue.adapters.errors import ErrorKind, driver_error, sqlstate
from sa_taskqueue.adapters.postgresql_derived import PostgreSQLDerivation
from sa_taskqueue.adapters.postgresql_holds import reservation_rows, session_locks
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    ChangeFrom,
    Columns,
    HeldReturning,
    HeldShape,
    Inputs,
    PatienceShape,
    ReservationShape,
    ReturningClaim,
    SessionLockShape,
    TakeShape,
)
from sa_taskqueue.adapters.types import JsonbText
from sa_taskqueue.states import Status

_KINDS = {
    "40P01": ErrorKind.DEADLOCK,
    "40001": ErrorKind.SERIALIZATION,
    "55P03": ErrorKind.LOCK_TIMEOUT,
    "57014": ErrorKind.LOCK_TIMEOUT,
    "23505": ErrorKind.UNIQUE,
    "23502": ErrorKind.NULL,
    "42P01": ErrorKind.MISSING_TABLE,
    "3F000": ErrorKind.MISSING_TABLE,
    "42703": ErrorKind.MISSING_COLUMN,
    "25006": ErrorKind.READ_ONLY,
    "42501": ErrorKind.NO_PRIVILEGE,
    "53100": ErrorKind.DISK_FULL,
    "57P01": ErrorKind.DISCONNECT,
    "57P02": ErrorKind.DISCONNECT,
    "57P03": ErrorKind.DISCONNECT,
    "57P05": ErrorKind.DISCONNECT,
    "25P03": ErrorKind.DISCONNECT,
    "53300": ErrorKind.DISCONNECT,
}


class PostgreSQLTypes(Adapter):
    """What every version of PostgreSQL has: types, clock, errors. Alone it serves the versions before SKIP LOCKED."""

    name: ClassVar[str] = "postgresql"
    copies: ClassVar[bool] = True
    changes_in_ctes: ClassVar[bool] = True

    def id_type(self) -> TypeEngine[Any]:
        return UUID(as_uuid=True)

    def timestamp_type(self) -> TypeEngine[Any]:
        return TIMESTAMP(timezone=True)

    def json_type(self) -> TypeEngine[Any]:
        return JsonbText()

    def hash_type(self) -> TypeEngine[Any]:
        return LargeBinary()

    def clock(self) -> ColumnElement[Any]:
        return func.clock_timestamp(type_=self.timestamp_type())

    def statement_clock(self) -> ColumnElement[Any]:
        return func.statement_timestamp(type_=self.timestamp_type())

    def after(self, seconds: Seconds) -> ColumnElement[Any]:
        return self.clock() + _interval(seconds)

    def ago(self, seconds: Seconds) -> ColumnElement[Any]:
        return self.statement_clock() - _interval(seconds)

    def seconds_until(self, moment: ColumnElement[Any]) -> ColumnElement[float]:
        return cast(func.extract("epoch", moment - self.statement_clock()), Float(53))

    def insert_unless_taken(self, table: Table, column: Column[Any]) -> Insert | None:
        return insert(table).on_conflict_do_nothing(index_elements=[column])

    def derivation(self) -> Derivation | None:
        return PostgreSQLDerivation(self.version)

    def insert_or_change(self, table: Table, column: Column[Any], change: ChangeFrom) -> Insert | None:
        statement = insert(table)
        assignments = {each.key: value for each, value in change(statement.excluded)}
        return statement.on_conflict_do_update(index_elements=[column], set_=assignments)

    def literals(self, dialect: Dialect) -> Dialect:
        # SQLAlchemy 2.0 doubles backslashes until a server says that it takes them as they are, which all do since 9.1.
        if self.version is not None:
            return dialect
        plain = copy.copy(dialect)
        plain._backslash_escapes = False  # type: ignore[attr-defined]  # noqa: SLF001 - set by SQLAlchemy at connect
        return plain

    def less_urgent(self, table: Table, status: Status, priority: ColumnElement[int]) -> ColumnElement[bool]:
        # A read that locks nothing drops the status, which the partial index implies, and without its first column the
        # index is read from the start: with 1,000,000 SCHEDULED rows a parallel scan of the table took 0.2 s each
        # second, compared as a row it is one probe of 0.05 ms (2026-11-30).
        name = status_literal(status)
        return and_(table.c.status == name, tuple_(table.c.status, table.c.priority) > tuple_(name, priority))

    def json(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, JsonbText())

    def lock(self, table: Table) -> AnySelect | None:
        these = table.c.id.in_(bindparam("ids", expanding=True))
        return select(table.c.id).where(these).order_by(table.c.id).with_for_update(key_share=True)

    def try_lock(self, name: str) -> AnySelect | None:
        return select(func.pg_try_advisory_xact_lock(lock_key(name)))

    def worker_settings(self) -> Sequence[str]:
        # A statement of the library that waits longer than this is in trouble; it is rolled back and tried again.
        return (
            "SET lock_timeout = '2s'",
            "SET statement_timeout = '30s'",
            "SET idle_in_transaction_session_timeout = '30s'",
        )

    def notify(self, channel: str, payload: str) -> AnySelect | None:
        return select(func.pg_notify(channel, payload))

    def classify_driver(self, error: BaseException) -> ErrorKind:
        original = driver_error(error)
        state = sqlstate(original)
        if state is None:
            # Raised by the driver, not by the server; DB-API 2.0 has this name for it in every driver.
            return ErrorKind.UNREADABLE if type(original).__name__ == "DataError" else ErrorKind.OTHER
        if state.startswith("08"):
            return ErrorKind.DISCONNECT
        return _KINDS.get(state, ErrorKind.OTHER)


class PostgreSQL(PostgreSQLTypes):
    """PostgreSQL 9.5 and later."""

    reservations: ClassVar[frozenset[str]] = frozenset({"lease", "row-lock", "advisory-lock", "reservation-table"})

    def lock_patience(self) -> PatienceShape:
        value = bindparam("patience", type_=String())
        return PatienceShape(
            read=select(func.current_setting("lock_timeout")),
            set=select(func.set_config("lock_timeout", value, true())),
            of_seconds=lambda seconds: f"{seconds}s",
        )

    def session_locks(self) -> SessionLockShape:
        return session_locks()

    def reservation_rows(self, table: Table) -> ReservationShape:
        return reservation_rows(table, self)

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        picked = self._materialized(pick.with_for_update(key_share=True, skip_locked=True), "picked")
        statement = changed(table, assignments).where(table.c.id == picked.c.id).returning(*columns)
        return ReturningClaim(statement)

    def skip_locked(self, pick: AnySelect, *, keys_stay: bool = False) -> AnySelect:
        return pick.with_for_update(skip_locked=True, key_share=keys_stay)

    def at_places(self, rows: AnySelect, first: Column[Any], second: Column[Any]) -> AnySelect | None:
        places = row_arrays("places", {"firsts": first.type, "seconds": second.type})
        return rows.join_from(places, first.table, and_(first == places.c.firsts, second == places.c.seconds))

    def take_from(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape | None:
        ranges = row_arrays(
            "ranges",
            {
                "low_priority": SmallInteger(),
                "low_ready_at": self.timestamp_type(),
                "low_id": self.id_type(),
                "end_priority": SmallInteger(),
            },
        )
        earlier = ranges.c.low_ready_at - _interval(bindparam("look_back", type_=Float()))
        # Each range has a limit and a lock of its own; the outer limit stops pulling from them, so that exactly as many
        # rows are locked as are taken. An outer ORDER BY would first lock a limit's worth in every range.
        found = (
            pick.where(
                tuple_(table.c.priority, table.c.ready_at, table.c.id)
                > tuple_(ranges.c.low_priority, earlier, ranges.c.low_id),
                table.c.priority < ranges.c.end_priority,
            )
            .with_for_update(key_share=True, skip_locked=True)
            .lateral("found")
        )
        limit = bindparam("at_most", type_=Integer())
        picked = self._materialized(select(found.c.id).select_from(ranges.join(found, true())).limit(limit), "picked")
        return ReturningClaim(changed(table, assignments).where(table.c.id == picked.c.id).returning(*columns))

    def held(
        self,
        table: Table,
        assign: AssignFrom | None,
        inputs: Inputs,
        *,
        wait: bool = True,
        status: StrEnum = Status.RUNNING,
    ) -> HeldShape:
        brought = row_arrays(
            "brought", {"id": self.id_type(), "epoch": BigInteger(), **inputs}, id="ids", epoch="epochs"
        )
        # Concatenated, so that the plan cannot read the index of RUNNING rows instead of the primary key: with the
        # statistics of a quiet table it did, and walked over every row in flight and, under an old snapshot, every dead
        # one (2026-11-30: a drain of 150,000 with a snapshot open fell to 0.35 of its rate).
        found = table.c.status.op("||")(literal_column("''"))
        lock = (
            select(table.c.id, *(brought.c[name] for name in inputs))
            .join_from(brought, table, table.c.id == brought.c.id)
            .where(table.c.epoch == brought.c.epoch, found == status_literal(status))
            .order_by(table.c.id)
            .with_for_update(key_share=assign is not None, skip_locked=not wait, of=table)
        )
        locked = self._materialized(lock, "locked")
        change = changed(table, assign({name: locked.c[name] for name in inputs}) if assign else None)
        return HeldReturning(change.where(table.c.id == locked.c.id).returning(table.c.id), tuple(inputs))

    def _materialized(self, statement: AnySelect, name: str) -> CTE:
        """Before version 12 every CTE is materialized, and the word is not known."""
        cte = statement.cte(name)
        return cte.prefix_with("MATERIALIZED") if at_least(self.version, 12) else cte


def row_arrays(name: str, types: Mapping[str, TypeEngine[Any]], **parameters: str) -> TableValuedAlias:
    """Rows brought along as arrays side by side; the arrays' parameters are named as the columns, or as said."""
    arrays = [
        cast(bindparam(parameters.get(key, key), type_=ARRAY(type_)), ARRAY(type_)) for key, type_ in types.items()
    ]
    columns = [column(key, type_) for key, type_ in types.items()]
    return func.unnest(*arrays).table_valued(*columns).render_derived(name=name)


def _interval(seconds: Seconds) -> ColumnElement[Any]:
    return seconds_expression(seconds) * literal_column("INTERVAL '1 second'", Interval())
