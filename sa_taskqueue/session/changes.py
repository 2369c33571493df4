"""Change events in a session: what is owed because of changed attributes is written in the flush that writes these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect
from sqlalchemy.sql.elements import ClauseElement

from sa_taskqueue.changes import Publication, Reaction, reactions_of, reacts
from sa_taskqueue.session.pending import (
    MESSAGES,
    OrderedMessage,
    Pending,
    Place,
    UnitOfWork,
    boundary,
    outbox_of,
    tasks_of,
)
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.inserts import insert_many
from sa_taskqueue.store.messages import insert_messages
from sa_taskqueue.store.stored_values import stored_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

    from sa_taskqueue.definitions import NewTask
    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.queue import TaskQueue

_MISSING = object()


def note_old_values(session: Session, work: UnitOfWork) -> None:
    """Before the flush, remember the old values of attributes that are set; those that were never loaded are read."""
    if not reacts():
        return
    work.old_values.clear()
    for instance, reaction in _candidates(session.dirty):
        key = reaction.change.key
        state = inspect(instance)
        history = state.attrs[key].history
        if history.has_changes() and (state, key) not in work.old_values:
            old = history.deleted[0] if history.deleted else _read(session, instance, reaction)
            work.old_values[state, key] = old


def write_reactions(
    session: Session, work: UnitOfWork, refuse_unsafe: Callable[[Session, UnitOfWork, Place], None]
) -> None:
    """After the flush was sent, with the keys of new rows known and the old values still at hand: write what is owed.

    Not added to the session, which would write them with the next flush: who commits by the connection has none.
    """
    if not reacts():
        return
    tasks: dict[TaskQueue, list[NewTask]] = {}
    messages: dict[TaskQueue, list[NewMessage]] = {}
    for instance, reaction in [*_candidates(session.new), *_candidates(session.dirty)]:
        if not _happened(session, work, instance, reaction):
            continue
        if isinstance(reaction, Publication):
            messages.setdefault(reaction.queue, []).append(reaction.message_of(instance))
        else:
            task = reaction.task.new(**reaction.arguments_of(instance))
            tasks.setdefault(reaction.task.task_queue, []).append(task)
    work.old_values.clear()
    current = boundary(session)
    owed = Pending() if current is None else work.pending(current)
    for queue, new in tasks.items():
        refuse_unsafe(session, work, tasks_of(queue))
        connection = session.connection(bind_arguments={"mapper": queue.model})
        with named_errors(queue.table, connection.engine):
            insert_many(connection, queue.table, new)
        owed.unflushed.update((tasks_of(queue), task.queue) for task in new)
    for queue, published in messages.items():
        refuse_unsafe(session, work, outbox_of(queue))
        connection = session.connection(bind_arguments={"mapper": queue.outbox})
        with named_errors(queue.outbox_table, connection.engine):
            insert_messages(connection, queue.outbox_table, published)
        owed.ordered += [OrderedMessage(queue, each.id) for each in published if each.key_hash is not None]
        owed.unflushed.add((outbox_of(queue), MESSAGES))


def publishes_at_flush(session: Session) -> bool:
    """Whether the next flush may publish: the messages are numbered before the commit, so that it must come sooner."""
    if not reacts():
        return False
    return any(isinstance(each, Publication) for _, each in [*_candidates(session.new), *_candidates(session.dirty)])


def _candidates(instances: Any) -> Iterator[tuple[Any, Reaction | Publication]]:
    for instance in instances:
        for reaction in reactions_of(type(instance)):
            yield instance, reaction


def _happened(session: Session, work: UnitOfWork, instance: Any, reaction: Reaction | Publication) -> bool:
    change, state = reaction.change, inspect(instance)
    if state.pending:
        old = None  # an INSERT changes each attribute from nothing
    else:
        old = work.old_values.get((state, change.key), _MISSING)
        if old is _MISSING:  # set by a listener that came after ours, or not at all
            history = state.attrs[change.key].history
            if not history.has_changes():
                return False
            old = history.deleted[0] if history.deleted else None
    new = state.dict.get(change.key, _MISSING)
    if new is _MISSING and state.pending and change.column.server_default is None and change.column.default is None:
        new = None
    if new is _MISSING or isinstance(new, ClauseElement):
        new = _read(session, instance, reaction)  # made by the database
    if not change.matches(old, new):
        return False
    return change.when is None or bool(change.when(instance))


def _read(session: Session, instance: Any, reaction: Reaction | Publication) -> Any:
    """What the row has in the attribute's column."""
    state = inspect(instance)
    mapper = state.mapper
    identity = state.identity or mapper.primary_key_from_instance(instance)
    connection = session.connection(bind_arguments={"mapper": mapper})
    return stored_value(connection, reaction.change.column, dict(zip(mapper.primary_key, identity, strict=True)))
