"""Tasks with a unique key: stored unless an unfinished task holds it, without an error in the caller's transaction.

PostgreSQL and SQLite skip the duplicate in the INSERT itself. Elsewhere a savepoint undoes the failed INSERT: every
single statement that avoids the error there (INSERT IGNORE, ON DUPLICATE KEY UPDATE, INSERT ... SELECT) leaves the
caller with a lock on the other task's row, for which the worker's finish then waits (measured 2026-11-30).

What happens to the duplicate, by the status of the task that holds the key:

    on_duplicate   SCHEDULED, NEW                          RUNNING (its unique_until is "end")
    ignore         nothing is stored                       nothing is stored
    raise          DuplicateTask                           DuplicateTask
    replace        the row takes the new task's values     TaskRunning

A task that is NEW may be locked by another transaction: that of its handler, under `RowLock`, which may take for ever.
So it is waited for no longer than `PATIENCE`; then `replace` is refused with TaskRunning, too.

A task with unique_until="start" gives its key away when it is claimed, so it never holds one while it is RUNNING.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Insert, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import DuplicateTask, TaskRunning
from sa_taskqueue.models.indexes import UNIQUE_COLUMN, unique_index_name
from sa_taskqueue.states import Status
from sa_taskqueue.store.fetching import in_parts
from sa_taskqueue.store.new_rows import NewTask, row_values
from sa_taskqueue.store.patience import lock_within
from sa_taskqueue.store.savepoints import savepoint

# The task that held the key may end between two statements; the key is then taken by the next try.
_TRIES = 3

PATIENCE = 2
"""Seconds: a claim, a promotion or another producer's unit of work is over by then, as a rule; a handler may not be."""

_KEPT_BY_REPLACE = ("id", "name", "unique_key", UNIQUE_COLUMN)


class Answer(enum.Enum):
    """What became of a task with a unique key."""

    INSERTED = "inserted"
    DUPLICATE = "duplicate"
    REPLACED = "replaced"


class Insertion(NamedTuple):
    """`id` is that of the task which holds the key now.

    It is the nil UUID where the transaction's snapshot is too old to see that task (REPEATABLE READ of MySQL).
    """

    id: uuid.UUID
    answer: Answer


class _Row(NamedTuple):
    task: NewTask
    values: Mapping[str, Any]

    @property
    def hash(self) -> bytes:
        return self.values[UNIQUE_COLUMN]  # type: ignore[no-any-return]


class _Holder(NamedTuple):
    id: uuid.UUID
    status: str


def insert_unique(
    connection: Connection, table: Table, task: NewTask, values: Mapping[str, Any] | None = None
) -> Insertion:
    """Store a task that has a unique key. `values` are those of the whole row, with the user's own columns.

    Waits for a transaction that has stored the same key and is still open. Raises `DuplicateTask` or `TaskRunning`
    where the task asks for it.
    """
    row = _Row(task, values or row_values(connection, [task])[0])
    return _Inserter(connection, table).insert([row])[task.id]


def insert_all_unique(connection: Connection, table: Table, tasks: Sequence[NewTask]) -> list[Insertion]:
    """`insert_unique` for many tasks, in the order of their keys: two transactions never wait for each other."""
    if not tasks:
        return []
    rows = [_Row(task, values) for task, values in zip(tasks, row_values(connection, tasks), strict=True)]
    answers = _Inserter(connection, table).insert(sorted(rows, key=lambda row: row.hash))
    return [answers[task.id] for task in tasks]


class _Inserter:
    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self._adapter = adapter_for(connection.dialect)
        self._answers: dict[uuid.UUID, Insertion] = {}

    def insert(self, rows: Sequence[_Row]) -> dict[uuid.UUID, Insertion]:
        """The answers by the id of the task."""
        left = rows
        for _ in range(_TRIES):
            left = [row for row in self._insert(left) if not self._settle_duplicate(row)]
            if not left:
                return self._answers
        for row in left:
            self._refuse(row, uuid.UUID(int=0))
        return self._answers

    def _insert(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """Insert what is new; the duplicates are returned."""
        statement = self._adapter.insert_unless_taken(self._table, self._table.c[UNIQUE_COLUMN])
        if statement is None:
            inserted = self._insert_in_savepoints(rows)
        elif self._connection.dialect.insert_executemany_returning:
            inserted = self._insert_returning(statement, rows)
        else:
            inserted = {row.task.id for row in rows if self._insert_counting(statement, row)}
        self._answers |= {task_id: Insertion(task_id, Answer.INSERTED) for task_id in inserted}
        return [row for row in rows if row.task.id not in inserted]

    def _insert_returning(self, statement: Insert, rows: Sequence[_Row]) -> set[uuid.UUID]:
        returning = statement.returning(self._table.c.id)
        if len(rows) == 1:  # its values may be expressions
            return set(self._connection.execute(returning.values(rows[0].values)).scalars())
        return set(self._connection.execute(returning, [row.values for row in rows]).scalars())

    def _insert_counting(self, statement: Insert, row: _Row) -> bool:
        counting = statement.values(row.values).execution_options(preserve_rowcount=True)
        return self._connection.execute(counting).rowcount == 1

    def _insert_in_savepoints(self, rows: Sequence[_Row]) -> set[uuid.UUID]:
        """One savepoint for all that seems to be new; only a key taken in this moment leads to more of them."""
        if len(rows) == 1:
            return self._insert_by_halves(rows)
        hashes = [row.hash for row in rows]
        column = self._table.c[UNIQUE_COLUMN]
        taken = {
            each
            for part in in_parts(hashes, self._adapter.longest_list)
            for each in self._connection.scalars(select(column).where(column.in_(part)))
        }
        first = {row.hash: row for row in reversed(rows) if row.hash not in taken}
        return self._insert_by_halves([row for row in rows if first.get(row.hash) is row])

    def _insert_by_halves(self, rows: Sequence[_Row]) -> set[uuid.UUID]:
        if not rows:
            return set()
        if self._insert_in_savepoint(rows):
            return {row.task.id for row in rows}
        middle = len(rows) // 2
        if not middle:
            return set()
        return self._insert_by_halves(rows[:middle]) | self._insert_by_halves(rows[middle:])

    def _insert_in_savepoint(self, rows: Sequence[_Row]) -> bool:
        statement = insert(self._table)
        try:
            with savepoint(self._connection):
                if len(rows) == 1:  # its values may be expressions
                    self._connection.execute(statement.values(rows[0].values))
                else:
                    self._connection.execute(statement, [row.values for row in rows])
        except IntegrityError as error:
            if not self._is_taken_key(error):
                raise
            return False
        return True

    def _is_taken_key(self, error: IntegrityError) -> bool:
        """Whether the key's own index was violated: any other violation is the caller's business."""
        if self._adapter.classify(error) is not ErrorKind.UNIQUE:
            return False
        # In lower case: Oracle tells all names in upper case. SQLite names the column instead.
        message = str(driver_error(error)).lower()
        names = (unique_index_name(self._table), f"{self._table.name}.{UNIQUE_COLUMN}")
        return any(name.lower() in message for name in names)

    def _settle_duplicate(self, row: _Row) -> bool:
        """False: the key has become free, or the task that holds it has changed; to be tried again."""
        replace = row.task.on_duplicate == "replace"
        if replace and (locked := self._locked_elsewhere(row)) is not None:
            self._refuse(row, locked)
        replaced = replace and self._replace(row)
        holder = self._holder(row)
        if holder is None:
            return False
        if replaced:
            self._answers[row.task.id] = Insertion(holder.id, Answer.REPLACED)
            return True
        if replace and holder.status != Status.RUNNING:
            return False
        self._refuse(row, holder.id)
        return True

    def _locked_elsewhere(self, row: _Row) -> uuid.UUID | None:
        """The waiting task that holds the key, if another transaction keeps it locked; else it is locked here now."""
        table, shape, waiting = self._table, self._adapter.lock_patience(), self._adapter.lock(self._table)
        if shape is None or waiting is None:
            return None
        holder = self._holder(row)
        if holder is None or holder.status == Status.RUNNING:
            return None
        # By the primary key: through the index of the keys MySQL would lock the key's entry, which the finish changes.
        free = self._adapter.skip_locked(select(table.c.id).where(table.c.id == holder.id), keys_stay=True)
        if self._connection.execute(free).first() is not None:
            return None
        got = lock_within(self._connection, self._adapter, shape, waiting, [holder.id], seconds=PATIENCE)
        return None if got else holder.id

    def _replace(self, row: _Row) -> bool:
        table, clock = self._table, self._adapter.clock()
        values = {key: value for key, value in row.values.items() if key not in _KEPT_BY_REPLACE}
        values.setdefault("scheduled_at", clock)
        statement = (
            update(table)
            .where(table.c[UNIQUE_COLUMN] == bindparam("taken_hash", row.hash))
            .where(table.c.status.in_([Status.NEW, Status.SCHEDULED]))
            .values(values)
            .values(ready_at=clock, attempt=0, crashes=0, error=None, errors=None, epoch=table.c.epoch + 1)
        )
        return self._connection.execute(statement).rowcount == 1

    def _holder(self, row: _Row) -> _Holder | None:
        table = self._table
        statement = select(table.c.id, table.c.status).where(table.c[UNIQUE_COLUMN] == row.hash)
        found = self._connection.execute(statement).one_or_none()
        return None if found is None else _Holder(*found)

    def _refuse(self, row: _Row, holder: uuid.UUID) -> None:
        key = row.task.unique_key or ""
        if row.task.on_duplicate == "raise":
            raise DuplicateTask(id=holder, key=key)
        if row.task.on_duplicate == "replace":
            raise TaskRunning(id=holder, key=key)
        self._answers[row.task.id] = Insertion(holder, Answer.DUPLICATE)
