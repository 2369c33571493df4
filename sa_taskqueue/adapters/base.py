"""The adapter: everything in which databases differ, and the portable answer to each question.

An adapter builds types, expressions and statements; it executes nothing but the BEGIN of SQLite. This base class
assumes only standard SQL: no ``SKIP LOCKED``, no ``RETURNING``. It serves unknown dialects, and servers too old for
what their own adapter does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Delete,
    Dialect,
    Float,
    Insert,
    Integer,
    LargeBinary,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    extract,
    func,
    literal_column,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import TypeEngine

from sa_taskqueue.adapters.derived import Derivation
from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    ChangeFrom,
    Columns,
    CompareAndSet,
    HeldOneByOne,
    HeldShape,
    Inputs,
    KeyTableShape,
    PatienceShape,
    ReservationShape,
    ReturningClaim,
    SessionLockShape,
    TakeShape,
)
from sa_taskqueue.states import Status

Seconds = float | ColumnElement[float]


ONE = literal_column("1", Integer())
"""As SQL text: a counter's step is no parameter."""


def status_literal(status: StrEnum) -> ColumnElement[str]:
    """The status as SQL text, not as a parameter: a generic plan with a parameter does not use a partial index."""
    return literal_column(f"'{status.value}'", Text())


def seconds_expression(seconds: Seconds) -> ColumnElement[float]:
    """A number of seconds as an expression; plain numbers become parameters."""
    return seconds if isinstance(seconds, ColumnElement) else bindparam(None, float(seconds), type_=Float())


def bound_inputs(inputs: Inputs) -> dict[str, ColumnElement[Any]]:
    """One parameter per input, for shapes that change one row, or rows with equal inputs, at a time."""
    return {name: bindparam(name, type_=type_) for name, type_ in inputs.items()}


def changed(table: Table, assignments: Assignments | None) -> Update | Delete:
    """The UPDATE with these assignments, or a DELETE where there are none."""
    if assignments is None:
        return delete(table)
    return update(table).ordered_values(*assignments)


def after_change(columns: Columns, assignments: Assignments) -> list[ColumnElement[Any]]:
    """The columns as a SELECT before the update must compute them to show the row after it."""
    new = {column.key: value for column, value in assignments}
    return [new[column.key].label(column.key) if column.key in new else column for column in columns]


class Adapter:
    """The portable adapter, and the base of the others. One per dialect and server version; holds no state."""

    name: ClassVar[str] = "generic"
    lists_may_scan: ClassVar[bool] = False
    """Whether a DELETE by a list of ids may read the whole of a small table, and wait for rows it does not name."""
    longest_list: ClassVar[int | None] = None
    """How many values the server takes in one list of parameters; None: as many as are ever sent."""
    locks_behind_last: ClassVar[bool] = False
    """Whether a locking read that finds fewer rows than its limit goes on to lock the row behind the last one."""
    locks_when_fetched: ClassVar[bool] = False
    """Whether rows lock as they are fetched: then `skip_locked` takes away the limit, and the caller fetches no more
    rows than that, with `bound_fetch`.
    """
    copies: ClassVar[bool] = False
    """Whether the server takes rows by COPY."""
    worker_isolation: ClassVar[str | None] = "READ COMMITTED"
    """The level at which the library's own transactions run; None where there is only one."""
    single_writer: ClassVar[bool] = False
    """Whether a write transaction excludes every other one, so that reads in it are as good as locks."""

    reservations: ClassVar[frozenset[str]] = frozenset({"lease"})
    """Names of the reservation strategies that the database can carry."""

    changes_in_ctes: ClassVar[bool] = False
    """Whether one statement can change rows in a CTE and insert others made of them."""

    loose_types: ClassVar[bool] = False
    """Whether a column can hold values of another type than its own."""

    def __init__(self, dialect: Dialect) -> None:
        self.version: tuple[int, ...] | None = _version(dialect)

    # Types

    def id_type(self) -> TypeEngine[Any]:
        """16 bytes, in the order of the canonical text."""
        return LargeBinary(16)

    def timestamp_type(self) -> TypeEngine[Any]:
        """UTC to the microsecond."""
        return DateTime(timezone=True)

    def json_type(self) -> TypeEngine[Any]:
        """JSON; takes and gives text."""
        return Text()

    def hash_type(self) -> TypeEngine[Any]:
        """32 bytes, compared byte by byte."""
        return LargeBinary(32)

    # The clock of the database

    def clock(self) -> ColumnElement[Any]:
        """The moment at which the expression is evaluated, not the start of the transaction."""
        return func.current_timestamp(type_=self.timestamp_type())

    def clock_default(self) -> str:
        """The clock as SQL text for the default of a column; "" where it is `clock`, in parentheses."""
        return ""

    def statement_clock(self) -> ColumnElement[Any]:
        """The clock for comparisons with a column: constant during a statement, so that an index serves the range."""
        return self.clock()

    def after(self, seconds: Seconds) -> ColumnElement[Any]:
        """The clock plus a number of seconds (fractions count)."""
        return self.clock() + seconds_expression(seconds) * literal_column("INTERVAL '1' SECOND")

    def ago(self, seconds: Seconds) -> ColumnElement[Any]:
        """The statement's clock minus a number of seconds."""
        return self.statement_clock() - seconds_expression(seconds) * literal_column("INTERVAL '1' SECOND")

    def seconds_until(self, moment: ColumnElement[Any]) -> ColumnElement[float]:
        """How many seconds the clock has still to go to ``moment``; negative when it has passed."""
        return cast(extract("epoch", moment - self.statement_clock()), Float())

    def json(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """JSON text as the value of a JSON column."""
        return text

    # Statements

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        """Change the rows that ``pick`` (a select of ``table.c.id`` with its order and limit) finds; show ``columns``.

        Nobody waits: rows that another transaction holds are left out. The first of ``columns`` is the id as the
        driver gives it.
        """
        shown = after_change(columns, assignments)
        candidates = pick.with_only_columns(
            *shown, table.c.epoch.label("old_epoch"), table.c.status.label("old_status")
        )
        change = changed(table, assignments).where(
            table.c.id == bindparam("old_id", type_=self.id_type()),
            table.c.epoch == bindparam("old_epoch"),
            table.c.status == bindparam("old_status"),
        )
        return CompareAndSet(candidates, change)

    def take_from(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape | None:
        """As `take`, but only in ranges of ``priority, ready_at, id``; None where nothing is gained by it.

        The ranges are the arrays ``low_priority, low_ready_at, low_id, end_priority``, in order and apart from each
        other; each begins ``look_back`` seconds earlier than it says.
        """
        return None

    def take_locks(self, table: Table, due: AnySelect, columns: Columns) -> TakeShape:
        """Lock what ``due`` finds for the time of a handler, changing nothing; show ``columns``."""
        return ReturningClaim(self.skip_locked(due.with_only_columns(*columns), keys_stay=True))

    def held(
        self,
        table: Table,
        assign: AssignFrom | None,
        inputs: Inputs,
        *,
        wait: bool = True,
        status: StrEnum = Status.RUNNING,
    ) -> HeldShape:
        """Change (or delete, without ``assign``) rows that are of this status with the epoch the caller knows.

        Locks are taken in the order of the ids. With ``wait`` false, rows locked by others are left out.
        """
        change = changed(table, assign(bound_inputs(inputs)) if assign else None).where(
            table.c.id == bindparam("old_id"),
            table.c.epoch == bindparam("old_epoch"),
            table.c.status == status_literal(status),
        )
        return HeldOneByOne(change, tuple(inputs))

    def lock(self, table: Table) -> AnySelect | None:
        """Locks the rows ``ids`` in the order of the ids, waiting; None where no lock can be had or is needed."""
        return None

    def by_index(self, pick: AnySelect, table: Table, index: str) -> AnySelect:
        """Have ``pick`` read the table in the order of this index, where the server might think of another."""
        return pick

    def less_urgent(self, table: Table, status: Status, priority: ColumnElement[int]) -> ColumnElement[bool]:
        """Which rows of one status come after this priority; for a read in the order of an index that begins so."""
        return and_(table.c.status == status_literal(status), table.c.priority > priority)

    def at_places(self, rows: AnySelect, first: Column[Any], second: Column[Any]) -> AnySelect | None:
        """Those of ``rows`` whose two columns are one of ``places``; an index over both finds each.

        The pairs come a second time as the lists ``firsts`` and ``seconds``. None: the database cannot compare pairs.
        """
        return None

    def skip_locked(self, pick: AnySelect, *, keys_stay: bool = False) -> AnySelect:
        """Let ``pick`` lock what it finds, leaving out what others hold; here it only reads: guard the change.

        With ``keys_stay`` rows that refer to the locked ones may be inserted, where the database can tell.
        """
        return pick

    def bound_fetch(self, cursor: Any, rows: int) -> None:
        """Keep the driver's cursor from fetching more than this many rows ahead."""

    def insert_unless_taken(self, table: Table, column: Column[Any]) -> Insert | None:
        """An INSERT that leaves a row out whose value of the unique ``column`` is taken.

        None: a plain INSERT fails, and is undone by a savepoint.
        """
        return None

    def insert_or_change(self, table: Table, column: Column[Any], change: ChangeFrom) -> Insert | None:
        """An INSERT that changes, and locks, the row whose value of the unique ``column`` is taken.

        ``change`` makes the assignments from the columns of the values that were brought. None: not offered.
        """
        return None

    def try_lock(self, name: str) -> AnySelect | None:
        """A statement that is true when this session got the lock ``name`` without waiting; None: not offered."""
        return None

    def unlock(self, name: str) -> AnySelect | None:
        """A statement that frees the lock before the end of the transaction; None: the end of it does."""
        return None

    def lock_patience(self) -> PatienceShape | None:
        """The setting for how long a lock is waited for, changed for part of the caller's transaction; None: none."""
        return None

    def session_locks(self) -> SessionLockShape | None:
        """Locks that belong to a connection until it frees them or ends; None: not offered."""
        return None

    def reservation_rows(self, table: Table) -> ReservationShape | None:
        """The statements of a table of reservations (`ReservationMixin`); None: not offered."""
        return None

    def notify(self, channel: str, payload: str) -> AnySelect | None:
        """A statement that wakes the listeners of ``channel`` when the transaction commits; None: not offered."""
        return None

    def derivation(self) -> Derivation | None:
        """How values of new rows are made from other rows by SQL; None: not offered."""
        return None

    def literals(self, dialect: Dialect) -> Dialect:
        """The dialect as it writes texts into SQL, also where no server has told how it reads them."""
        return dialect

    def key_table(self) -> KeyTableShape | None:
        """A table for the keys of changed rows, where a statement cannot hand them on; None: not offered."""
        return None

    def narrow_columns(self, table: str, schema: str | None) -> AnySelect | None:
        """A query for name and character set of columns that cannot hold all of Unicode; None: every column can."""
        return None

    # Connections and errors

    def begin(self, connection: Connection) -> None:
        """Begin a write transaction where the driver's own way does not do."""

    def private_to_connection(self, url: URL) -> bool:
        """Whether every connection to the URL sees a database of its own."""
        return False

    def file_of(self, url: URL) -> str | None:
        """The file that is the database; None where it is a server or in memory."""
        return None

    def worker_settings(self) -> Sequence[str]:
        """Statements for each new connection of a worker."""
        return ()

    def classify(self, error: BaseException) -> ErrorKind:
        """What kind of error this is; takes SQLAlchemy's wrapper or the driver's exception."""
        if getattr(error, "connection_invalidated", False):
            return ErrorKind.DISCONNECT
        if isinstance(driver_error(error), ValueError):
            return ErrorKind.UNREADABLE
        return self.classify_driver(error)

    def classify_driver(self, error: BaseException) -> ErrorKind:
        """The part of `classify` that depends on the database."""
        return ErrorKind.UNIQUE if isinstance(error, IntegrityError) else ErrorKind.OTHER


def in_places(rows: AnySelect, first: Column[Any], second: Column[Any]) -> AnySelect:
    """`Adapter.at_places` by a list of pairs."""
    return rows.where(tuple_(first, second).in_(bindparam("places", expanding=True)))


def at_least(version: tuple[int, ...] | None, *floor: int) -> bool:
    """Whether the server is at least of this version; an unknown version counts as the newest."""
    return version is None or version >= floor


def lock_key(name: str) -> int:
    """A signed 64-bit number for the name of a lock."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _version(dialect: Dialect) -> tuple[int, ...] | None:
    """The server's version, None while no connection was made: the newest is assumed then."""
    found = getattr(dialect, "server_version_info", None)
    return tuple(part for part in found if isinstance(part, int)) if found else None
