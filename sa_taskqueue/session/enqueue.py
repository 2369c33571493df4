"""`enqueue`: one task, stored if and only if the session's transaction commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec

from sqlalchemy.orm import Session

from sa_taskqueue.definitions import BoundTask, TaskDefinition
from sa_taskqueue.exceptions import InvalidSetting, NoTransaction, TransactionEnded
from sa_taskqueue.session.hooks import hook, is_hooked, refuse_unsafe_once
from sa_taskqueue.session.keyed import insert_keyed, is_idle
from sa_taskqueue.session.outermost import arm_flushed
from sa_taskqueue.session.pending import (
    KeyedRow,
    Pending,
    UnitOfWork,
    boundary,
    enclosing,
    tasks_of,
    unit_of_work,
)
from sa_taskqueue.session.rows import new_row
from sa_taskqueue.session.targets import AnySession, sync_session

if TYPE_CHECKING:
    from sa_taskqueue.definitions import NewTask
    from sa_taskqueue.queue import TaskQueue

P = ParamSpec("P")


def enqueue(
    session: AnySession, task: TaskDefinition[P, Any] | BoundTask[P, Any], /, *args: P.args, **kwargs: P.kwargs
) -> Any:
    """Store a task in the session's transaction and return its row, an instance of your own model.

    Nothing is sent to the database before the flush, so there is nothing to await on an AsyncSession. The row's id is
    known at once; whether a unique key was free is known after the flush (`duplicate_of`). Raises InvalidTask and its
    kind before any SQL, TransactionEnded after the COMMIT has begun.
    """
    given: object = task  # whatever the annotation says
    if not isinstance(given, (TaskDefinition, BoundTask)):
        allowed = "a function with @queue.task, named but not called, and then its arguments: enqueue(send, 1)"
        raise InvalidSetting(setting="task", value=given, allowed=allowed)
    return enqueue_new(sync_session(session), task.task_queue, task.new(*args, **kwargs))


def enqueue_new(session: Session, queue: TaskQueue, task: NewTask) -> Any:
    """Store a validated task in the session's transaction and return its row."""
    refuse_ended(session, task.name)
    hook_before_flush(session)
    row = new_row(session, queue, task)
    work = unit_of_work(session)
    missed = work.collected and is_flushing(session)
    if missed:
        refuse_unsafe_once(session, work, tasks_of(queue))
    if task.unique_hash is not None:
        _add_keyed(session, work, KeyedRow(row, task, queue), missed)
    else:
        session.add(row)
        owed_now(session, work).unflushed.add((tasks_of(queue), task.queue))
    return row


def hook_before_flush(session: Session) -> None:
    """Listen to a session met for the first time, which SQLAlchemy cannot do while it calls the event's listeners."""
    if not is_hooked(session) and is_flushing(session):
        allowed = "a TaskSession, or from a factory given to install(), when it first meets a task in a flush event"
        raise InvalidSetting(setting="session", value=session, allowed=allowed)
    hook(session)


def refuse_ended(session: Session, name: str) -> None:
    """Raise where the session has no transaction that the task could be part of."""
    transaction = session.get_transaction()
    if transaction is None:
        if not session.autobegin:
            raise NoTransaction(reason="it was made with autobegin=False and begin() was not called")
    elif not transaction.is_active:
        raise TransactionEnded(name=name)


def _add_keyed(session: Session, work: UnitOfWork, keyed: KeyedRow, missed: bool) -> None:
    """Leave the row to the coming flush, or to the running one if it has `missed` the collection of keyed rows.

    Added to the unit of work at that point it would be inserted as any other, and a duplicate end the transaction.
    """
    if not missed:
        session.add(keyed.row)
        owed_now(session, work).keyed.append(keyed)
        return
    keyed.collected = True
    owed_now(session, work).keyed.append(keyed)
    if is_idle(session):
        insert_keyed(session, work)  # this flush has nothing else to do and would not come to after_flush
        arm_flushed(session, work)


def owed_now(session: Session, work: UnitOfWork) -> Pending:
    """Return the `Pending` of the boundary that a row added now belongs to."""
    current = boundary(session) or session.begin()
    if current.nested and not current.is_active:
        current = enclosing(current)  # the after_commit of a savepoint: its row goes with the enclosing transaction
    return work.pending(current)


def is_flushing(session: Session) -> bool:
    """Tell whether a flush is running; SQLAlchemy has no public word for it (a test pins this one)."""
    return bool(session._flushing)  # noqa: SLF001
