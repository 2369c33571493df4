"""The numbers of ordered messages, taken as the last thing before the outermost commit.

SQLAlchemy flushes unrelated tables in the order of their names, so that within a flush a key might be locked before the
row whose change the message tells about: then two transactions can commit in another order than that of their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.orm.attributes import set_committed_value

from sa_taskqueue.session.keyed import is_idle
from sa_taskqueue.session.pending import OrderedMessage, UnitOfWork, boundary
from sa_taskqueue.states import MessageStatus
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.sequences import assign

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from sa_taskqueue.queue import TaskQueue

_MOST_FLUSHES = 100
"""As SQLAlchemy's own commit: an event that makes work in each flush would go on for ever."""


def number_messages(session: Session, work: UnitOfWork) -> None:
    """Number the messages of the root transaction, which is about to be committed or prepared."""
    current = boundary(session)
    owed = work.boundaries.get(current) if current is not None else None
    if owed is None or not owed.ordered:
        return
    for _ in range(_MOST_FLUSHES):
        if is_idle(session):
            break
        session.flush()
    messages, owed.ordered = owed.ordered, []
    for queue in dict.fromkeys(message.queue for message in messages):
        _number(session, queue, [message for message in messages if message.queue is queue])


def _number(session: Session, queue: TaskQueue, messages: list[OrderedMessage]) -> None:
    connection = session.connection(bind_arguments={"mapper": queue.outbox})
    with named_errors(queue.outbox_keys_table, connection.engine):
        numbers = assign(connection, queue.outbox_table, queue.outbox_keys_table, [each.id for each in messages])
    for message in messages:
        if message.row is not None and message.id in numbers and message.row in session:
            set_committed_value(message.row, "seq", numbers[message.id])
            set_committed_value(message.row, "status", MessageStatus.QUEUED)
