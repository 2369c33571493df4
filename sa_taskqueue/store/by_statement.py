"""Rows made by one statement from the rows that another one changes, inserts, deletes or finds.

On PostgreSQL both are one statement. Elsewhere no statement hands its rows to another: the keys of the rows are locked
and written into a temporary table first, and all further statements join it. The same WHERE twice would be wrong: the
second one no longer finds what the first has changed, or finds what others have changed meanwhile.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    Insert,
    MetaData,
    Row,
    Table,
    Update,
    delete,
    insert,
    literal_column,
    select,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import Executable

from sa_taskqueue.adapters.derived import Derivation
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.adapters.shapes import AnySelect, KeyTableShape
from sa_taskqueue.store.new_rows import database_now
from sa_taskqueue.store.savepoints import savepoint

Change = Update | Delete | Insert
"""A statement that changes rows of one table."""

CHANGED = "sa_taskqueue_changed"
QUEUED = "sa_taskqueue_queued"
KEYS = "sa_taskqueue_keys"

_CLOCK_SLACK = dt.timedelta(seconds=10)
"""A server's clock may be set back meanwhile. What is not found is numbered by the relay, perhaps out of order."""

_ROWS_PER_PART = 1000
"""Keys of inserted rows that pass through Python at a time."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """What is inserted for each row: values that need no column of it, and expressions over its columns."""

    table: Table
    values: Mapping[str, ColumnElement[Any]]
    derived: Mapping[str, ColumnElement[Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many rows there were, and what the statement returns of them (None: it has no RETURNING)."""

    count: int
    rows: Sequence[Row[Any]] | None


def insert_for_found(connection: Connection, rows: NewRows, found: AnySelect) -> Outcome:
    """Insert a row for each that the SELECT finds."""
    if found._distinct or found._distinct_on:  # noqa: SLF001 - with other columns other rows would be distinct
        labels = {name: value.label(f"sa_taskqueue_{name}") for name, value in rows.derived.items()}
        inner = found.add_columns(*labels.values()).subquery("found")
        derived = [inner.c[label.name] for label in labels.values()]
        source = select(*rows.values.values(), *derived).select_from(inner)
    else:
        columns = [*rows.values.values(), *rows.derived.values()]
        source = found.with_only_columns(*columns, maintain_column_froms=True)
    statement = insert(rows.table).from_select([*rows.values, *rows.derived], source)
    return Outcome(_count(connection, statement, found), None)


def insert_for_changed(connection: Connection, rows: NewRows, change: Change) -> Outcome:
    """Make the change, and insert a row for each row that it touches."""
    adapter = adapter_for(connection.dialect)
    if adapter.changes_in_ctes:
        return _in_one_statement(connection, rows, change)
    shape = adapter.key_table()
    if shape is None:
        raise NotImplementedError(adapter.name)
    return _ByKeys(connection, rows, change, shape).run()


def _in_one_statement(connection: Connection, rows: NewRows, change: Change) -> Outcome:
    labels = [value.label(f"sa_taskqueue_{name}") for name, value in rows.derived.items()]
    changed = change.returning(*labels).cte(CHANGED)
    shown, derived = list(changed.c)[: -len(labels)], list(changed.c)[-len(labels) :]
    source = as_core(select(*rows.values.values(), *derived).select_from(changed))
    queued = insert(rows.table).from_select([*rows.values, *rows.derived], source)
    if not shown:
        return Outcome(_count(connection, queued, change), None)
    both = as_core(select(*shown).add_cte(queued.cte(QUEUED)))
    found = connection.execute(both.options(*change._with_options)).all()  # noqa: SLF001
    return Outcome(len(found), found)


def give_functions(connection: Connection, derivation: Derivation) -> None:
    """Let the database call the functions that it has not got itself."""
    for name, function in derivation.functions.items():
        driver: Any = connection.connection.dbapi_connection
        driver.create_function(name, 1, function)


def now_floor(connection: Connection) -> uuid.UUID:
    """An id below all those that the database makes from now on."""
    moment = database_now(connection) - _CLOCK_SLACK
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def inserted_since(connection: Connection, rows: NewRows, floor: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the rows inserted, which are those marked as `rows` says: found by key, as they are new."""
    columns = rows.table.c
    mark = columns.reserved_by == rows.values["reserved_by"]
    return list(connection.execute(select(columns.id).where(columns.id >= floor, mark).order_by(columns.id)).scalars())


class _ByKeys:
    """The statements that one change becomes; all find their rows by the same keys."""

    def __init__(self, connection: Connection, rows: NewRows, change: Change, shape: KeyTableShape) -> None:
        self._connection = connection
        self._rows = rows
        self._change = change
        self._shape = shape
        self._table = table_of(change)
        key = list(self._table.primary_key.columns)
        self._keys = Table(KEYS, MetaData(), *(Column(f"key_{number}", each.type) for number, each in enumerate(key)))
        self._pairs = list(zip(key, self._keys.c, strict=True))

    def run(self) -> Outcome:
        with self._key_table():
            # A write before the savepoint: sqlite3 left to itself sends BEGIN with the first one only.
            count = 0 if isinstance(self._change, Insert) else self._collect()
            if isinstance(self._change, Insert):
                self._connection.execute(delete(self._keys))
            # For the caller who goes on after an error, such as a NULL: the change is not kept without its rows.
            with savepoint(self._connection):
                return self._change_and_queue(count)

    def _change_and_queue(self, count: int) -> Outcome:
        if isinstance(self._change, Insert):
            count = self._insert()
            return Outcome(count, self._queue(count))
        if isinstance(self._change, Delete):
            returned = self._queue(count)
            self._make_change()
        else:
            self._make_change()
            returned = self._queue(count)
        return Outcome(count, returned)

    @contextlib.contextmanager
    def _key_table(self) -> Iterator[None]:
        if self._shape.drops_first:
            self._drop()
        none: AnySelect = select(*(column.label(key.name) for column, key in self._pairs)).where(
            literal_column("1 = 0")
        )
        self._connection.execute(self._shape.create(self._keys, none))
        try:
            yield
        except BaseException:
            with contextlib.suppress(DBAPIError):  # the error of the block says more
                self._drop()
            raise
        self._drop()

    def _drop(self) -> None:
        self._connection.exec_driver_sql(self._shape.drop(self._keys))

    def _collect(self) -> int:
        found = select(*self._key_attributes()).where(*self._change._where_criteria)  # type: ignore[union-attr]  # noqa: SLF001
        if self._shape.locks:
            found = found.with_for_update()
        return _count(self._connection, insert(self._keys).from_select(list(self._keys.c), found), self._change)

    def _key_attributes(self) -> list[Any]:
        """The key as the ORM knows it, so that criteria of its own (inheritance, options) hold here, too."""
        mapper = self._change._propagate_attrs.get("plugin_subject")  # noqa: SLF001
        if mapper is None or list(mapper.primary_key) != [column for column, _ in self._pairs]:
            return [column for column, _ in self._pairs]
        return [mapper.get_property_by_column(column).class_attribute for column, _ in self._pairs]

    def _insert(self) -> int:
        count = 0
        returning = without(self._change, "_returning").returning(*(column for column, _ in self._pairs))
        for part in self._connection.execute(returning).partitions(_ROWS_PER_PART):
            keys = [dict(zip(self._keys.c.keys(), row, strict=True)) for row in part]
            self._connection.execute(insert(self._keys), keys)
            count += len(keys)
        return count

    def _make_change(self) -> None:
        bare = without(self._change, "_returning", "_where_criteria")
        self._connection.execute(self._shape.among(bare, self._pairs))

    def _queue(self, count: int) -> Sequence[Row[Any]] | None:
        """Insert the new rows, and read what is to be returned."""
        joined = [column == key for column, key in self._pairs]
        if count:
            columns = [*self._rows.values.values(), *self._rows.derived.values()]
            source = as_core(select(*columns).where(*joined))
            statement = insert(self._rows.table).from_select([*self._rows.values, *self._rows.derived], source)
            self._connection.execute(statement)
        returned = self._change._returning  # noqa: SLF001 - there is no public word for it
        if not returned:
            return None
        shown = as_core(select(*returned).where(*joined))
        if self._shape.locks:
            shown = shown.with_for_update()  # else a snapshot of the transaction's start may be read
        return self._connection.execute(shown).all()


def without(statement: Any, *parts: str) -> Any:
    """A copy of the statement without its WHERE or RETURNING; SQLAlchemy has no public word for it."""
    copy = statement._generate()  # noqa: SLF001
    for part in parts:
        setattr(copy, part, ())
    return copy


def as_core(statement: Any) -> Any:
    """The statement as it stands: the ORM adds no criteria to it, which the rows have met before they were changed."""
    return statement._set_propagate_attrs({})  # noqa: SLF001


def table_of(change: Change) -> Table:
    """The table whose rows it changes."""
    table: Any = change.table
    found: Table = table.metadata.tables[table.key]
    return found


def _count(connection: Connection, statement: Executable, user_statement: Any) -> int:
    """Execute, and tell the number of rows. Options of the user's statement count for the whole."""
    options = user_statement._with_options  # noqa: SLF001
    whole = statement.options(*options).execution_options(preserve_rowcount=True)
    rowcount: int = connection.execute(whole).rowcount
    return rowcount
