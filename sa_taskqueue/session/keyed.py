"""Rows with a unique key: out of the unit of work before its flush, into the table after their parents.

The unit of work would raise IntegrityError for a duplicate and end the caller's transaction. A Core INSERT in
`before_flush` would miss the foreign key of a parent flushed in the same flush (measured 2026-11-30, SQLAlchemy 2.1.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect
from sqlalchemy.orm import make_transient, make_transient_to_detached, object_mapper

from sa_taskqueue.session.parents import leave_parents, return_to_parents, show_to_parents
from sa_taskqueue.session.pending import KeyedRow, Pending, UnitOfWork, boundary, tasks_of
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.unique import Answer, insert_unique

if TYPE_CHECKING:
    import uuid

    from sqlalchemy.orm import Session

_DUPLICATE_OF = "sa_taskqueue.duplicate_of"


def duplicate_of(row: object) -> uuid.UUID | None:
    """Return the id of the task that held the row's unique key already, None if the row itself was stored.

    Known after the flush. With `on_duplicate="replace"` that task has taken over the row's values. A duplicate is not
    in the session. The id is nil (all zeros) where the transaction's snapshot is too old to see the other task.
    """
    holder: uuid.UUID | None = inspect(row, raiseerr=True).info.get(_DUPLICATE_OF)
    return holder


def is_idle(session: Session) -> bool:
    """Tell whether a flush would find nothing to do."""
    return not (session.new or session.deleted or session.dirty)


def collect_keyed(session: Session, work: UnitOfWork) -> bool:
    """Take the keyed rows of the current boundary out of the unit of work, and tell whether there are any.

    A row that the user has expunged is dropped.
    """
    for row in work.duplicates:
        if row in session:
            session.expunge(row)
            leave_parents(row)
    owed = _owed(session, work)
    if owed is None or not owed.keyed:
        return False
    pending = session.new
    owed.keyed = [keyed for keyed in owed.keyed if keyed.collected or keyed.row in pending]
    for keyed in owed.keyed:
        if not keyed.collected:
            session.expunge(keyed.row)
            keyed.collected = True
            keyed.parents = leave_parents(keyed.row)
    return bool(owed.keyed)


def insert_keyed(session: Session, work: UnitOfWork) -> None:
    """Insert the collected rows, sorted by key so that two transactions cannot wait for each other.

    Raises DuplicateTask or TaskRunning where the task asked for it.
    """
    owed = _owed(session, work)
    if owed is None or not owed.keyed:
        return
    rows = sorted((keyed for keyed in owed.keyed if keyed.collected), key=_hash_of)
    owed.keyed = [keyed for keyed in owed.keyed if not keyed.collected]
    for keyed in rows:
        _insert(session, work, owed, keyed)


def forget_inserted(session: Session, owed: Pending | None) -> None:
    """Make the rows of a boundary that was rolled back transient again, as the unit of work does with its own."""
    if owed is None:
        return
    for row in owed.inserted:
        if row in session:
            session.expunge(row)
        make_transient(row)
    owed.inserted.clear()


def _owed(session: Session, work: UnitOfWork) -> Pending | None:
    current = boundary(session)
    return work.boundaries.get(current) if current is not None else None


def _hash_of(keyed: KeyedRow) -> bytes:
    return keyed.task.unique_hash or b""


def _insert(session: Session, work: UnitOfWork, owed: Pending, keyed: KeyedRow) -> None:
    connection = session.connection(bind_arguments={"mapper": keyed.queue.model})
    return_to_parents(keyed.row, keyed.parents)
    with named_errors(keyed.queue.table, connection.engine):
        holder, answer = insert_unique(connection, keyed.queue.table, keyed.task, _values(keyed.row))
    if answer is not Answer.DUPLICATE:
        owed.unflushed.add((tasks_of(keyed.queue), keyed.task.queue))
    if answer is not Answer.INSERTED:
        inspect(keyed.row).info[_DUPLICATE_OF] = holder
        work.duplicates.append(keyed.row)
        return
    show_to_parents(keyed.row, keyed.parents)
    make_transient_to_detached(keyed.row)
    session.add(keyed.row)
    owed.inserted.append(keyed.row)


def _values(row: Any) -> dict[str, Any]:
    """Return the values of the attributes that are set, by column."""
    mapper = object_mapper(row)
    present = inspect(row).dict
    return {
        attribute.columns[0].key: present[attribute.key]
        for attribute in mapper.column_attrs
        if attribute.key in present and attribute.columns[0].table is mapper.local_table
    }
