"""The session events that the library listens to: on its own and installed classes, or on one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from sa_taskqueue.session import outermost
from sa_taskqueue.session.autocommit import refuse_unsafe
from sa_taskqueue.session.changes import note_old_values, publishes_at_flush, write_reactions
from sa_taskqueue.session.keyed import collect_keyed, forget_inserted, insert_keyed, is_idle
from sa_taskqueue.session.naming import name_errors
from sa_taskqueue.session.ordering import number_messages
from sa_taskqueue.session.pending import Place, UnitOfWork, boundary, enclosing, open_unit_of_work, unit_of_work
from sa_taskqueue.store.errors import raise_named

if TYPE_CHECKING:
    from sqlalchemy.orm import SessionTransaction

_MARK = "_sa_taskqueue_hooked"


def hook(target: type[Session] | Session) -> None:
    """Listen to a session class or to one session; nothing happens the second time."""
    if is_hooked(target):
        return
    for name, listener in _LISTENERS.items():
        event.listen(target, name, listener)
    name_errors(target)
    setattr(target, _MARK, True)


def is_hooked(target: type[Session] | Session) -> bool:
    """Tell whether the library listens to a session or session class already."""
    return getattr(target, _MARK, False)


def refuse_unsafe_once(session: Session, work: UnitOfWork, place: Place) -> None:
    """Check the connection of a table the first time it is met in a transaction, and in a savepoint."""
    try:
        connection = session.connection(bind_arguments={"mapper": place.model})
    except DBAPIError as error:  # a BEGIN IMMEDIATE of SQLite: busy, or read-only
        raise_named(error, place.table, session.get_bind(place.model).engine)
        raise
    work.connections[place] = connection
    met = connection, connection.in_nested_transaction()
    if met not in work.checked:
        refuse_unsafe(connection)
        work.checked.add(met)


def _before_flush(session: Session, _context: object, _objects: object) -> None:
    work = unit_of_work(session)  # also without a task: a later listener may enqueue one in this flush
    for place in work.unflushed_places():
        refuse_unsafe_once(session, work, place)
    if collect_keyed(session, work) and is_idle(session):
        insert_keyed(session, work)  # nothing else to flush: SQLAlchemy would not call after_flush
        outermost.arm_flushed(session, work)
    note_old_values(session, work)
    work.collected = True


def _after_flush(session: Session, _context: object) -> None:
    work = open_unit_of_work(session)
    if work is not None:
        work.collected = False
        insert_keyed(session, work)
        write_reactions(session, work, refuse_unsafe_once)
        outermost.arm_flushed(session, work)


def _before_commit(session: Session) -> None:
    if session.in_nested_transaction():
        return
    if publishes_at_flush(session):
        session.flush()
    work = open_unit_of_work(session)
    if work is not None:
        number_messages(session, work)


def _after_commit(session: Session) -> None:
    work = open_unit_of_work(session)
    if work is None:
        return
    committed = boundary(session)
    owed = work.boundaries.get(committed) if committed is not None else None
    if committed is None or owed is None:
        return
    if committed.nested:
        owed.committed = True  # a savepoint's COMMIT: its work goes to the enclosing boundary when it has ended
    else:
        outermost.wake(owed)


def _after_rollback(session: Session) -> None:
    """Forget a boundary while its objects still have their values: the session expires them after this event."""
    work = open_unit_of_work(session)
    rolled_back = boundary(session)
    if work is not None and rolled_back is not None:
        forget_inserted(session, work.boundaries.pop(rolled_back, None))


def _after_transaction_end(session: Session, transaction: SessionTransaction) -> None:
    work = open_unit_of_work(session)
    if work is None:
        return
    if not transaction.nested:
        if transaction.parent is None:
            session.info.pop(work.KEY, None)
        return
    owed = work.boundaries.pop(transaction, None)
    if owed is None:
        return
    if owed.committed:
        work.pending(enclosing(transaction)).merge(owed)
    else:
        forget_inserted(session, owed)


_LISTENERS: dict[str, Any] = {
    "before_flush": _before_flush,
    "after_flush": _after_flush,
    "before_commit": _before_commit,
    "after_commit": _after_commit,
    "after_rollback": _after_rollback,
    "after_transaction_end": _after_transaction_end,
}
