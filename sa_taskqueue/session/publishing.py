"""`publish` and `publish_many`: messages, stored if and only if the session's transaction commits."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast, overload
from uuid import UUID

from sa_taskqueue.exceptions import InvalidMessage, InvalidSetting
from sa_taskqueue.messages import NewMessage
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session.enqueue import hook_before_flush, is_flushing, owed_now, refuse_ended
from sa_taskqueue.session.hooks import hook, refuse_unsafe_once
from sa_taskqueue.session.outermost import arm_flushed
from sa_taskqueue.session.pending import MESSAGES, OrderedMessage, boundary, outbox_of, unit_of_work
from sa_taskqueue.session.rows import new_message_row
from sa_taskqueue.session.targets import AnySession, AsyncTarget, SyncTarget, async_session, is_async, sync_session
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.messages import insert_messages

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from sa_taskqueue.session.pending import UnitOfWork

Fields = Mapping[str, Any]


def publish(
    session: AnySession,
    queue: TaskQueue,
    topic: str,
    payload: object,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    type: str | None = None,  # noqa: A002 - it is the column's name
    run_after: datetime | timedelta | None = None,
    ordered: bool = True,
    id: UUID | None = None,  # noqa: A002 - it is the column's name
) -> Any:
    """Store a message in the session's transaction and return its row, an instance of your own outbox model.

    Nothing is sent to the database before the flush, so there is nothing to await on an AsyncSession. Messages of one
    ``key`` leave in the order of the commits, those of a transaction in the order of the calls; with ``ordered`` false
    the key only chooses the partition. One with ``run_after`` takes its place when it is due. Raises InvalidTask and
    its kind before any SQL, TransactionEnded after the COMMIT has begun.
    """
    message = checked_queue(queue).message(
        topic, payload, key=key, headers=headers, type=type, run_after=run_after, ordered=ordered, id=id
    )
    return publish_new(sync_session(session), queue, message)


def publish_new(session: Session, queue: TaskQueue, message: NewMessage) -> Any:
    """Store a checked message in the session's transaction and return its row."""
    refuse_ended(session, message.topic)
    hook_before_flush(session)
    row = new_message_row(session, queue, message)
    work = unit_of_work(session)
    if work.collected and is_flushing(session):
        refuse_unsafe_once(session, work, outbox_of(queue))
    session.add(row)
    owed = owed_now(session, work)
    owed.unflushed.add((outbox_of(queue), MESSAGES))
    if message.key_hash is not None and not message.waits:
        owed.ordered.append(OrderedMessage(queue, message.id, row))
    return row


@overload
def publish_many(session: SyncTarget, queue: TaskQueue, messages: Iterable[Fields | NewMessage], /) -> list[UUID]: ...
@overload
def publish_many(
    session: AsyncTarget, queue: TaskQueue, messages: Iterable[Fields | NewMessage], /
) -> Awaitable[list[UUID]]: ...
def publish_many(
    session: AnySession, queue: TaskQueue, messages: Iterable[Fields | NewMessage], /
) -> list[UUID] | Awaitable[list[UUID]]:
    """Store many messages and return their ids in the same order.

    Each is a mapping of what `publish` takes (``topic`` and ``payload`` at least) or made by ``queue.message(...)``.
    All are checked before the first statement. It writes to the database at once, after a flush, so it is awaited on an
    AsyncSession; no rows enter the session.
    """
    checked_queue(queue)
    checked = [item if isinstance(item, NewMessage) else _new(queue, item) for item in messages]
    if is_async(session):
        return async_session(cast("AsyncTarget", session)).run_sync(write_messages, queue, checked)
    return write_messages(sync_session(session), queue, checked)


def write_messages(session: Session, queue: TaskQueue, messages: list[NewMessage]) -> list[UUID]:
    """Write checked messages through the session's connection, taken anew: a kept one may miss the savepoint."""
    if not messages:
        return []
    refuse_ended(session, messages[0].topic)
    hook(session)
    session.flush()
    work = unit_of_work(session)
    refuse_unsafe_once(session, work, outbox_of(queue))
    connection = session.connection(bind_arguments={"mapper": queue.outbox})
    with named_errors(queue.outbox_table, connection.engine):
        insert_messages(connection, queue.outbox_table, messages)
    written(session, work, queue, [each.id for each in messages if each.key_hash is not None and not each.waits])
    return [message.id for message in messages]


def written(session: Session, work: UnitOfWork, queue: TaskQueue, ordered: Iterable[UUID]) -> None:
    """Take note of messages that were written to the outbox by a statement; those of keys get their numbers later."""
    current = boundary(session)
    if current is not None:
        owed = work.pending(current)
        owed.ordered += [OrderedMessage(queue, each) for each in ordered]
        owed.unflushed.add((outbox_of(queue), MESSAGES))
        arm_flushed(session, work)


def checked_queue(queue: TaskQueue) -> TaskQueue:
    """Refuse what is no TaskQueue, such as a topic where the queue was forgotten."""
    given: object = queue  # whatever the annotation says
    if not isinstance(given, TaskQueue):
        raise InvalidSetting(
            setting="queue", value=given, allowed="a TaskQueue: publish(session, queue, topic, payload)"
        )
    return queue


def _new(queue: TaskQueue, fields: Fields) -> NewMessage:
    given: object = fields  # whatever the annotation says
    if not isinstance(given, Mapping):
        reason = f"it is of the type {type(given).__qualname__}, but must be a mapping or a NewMessage"
        raise InvalidMessage(field="item", reason=f"{reason}: [{{'topic': ..., 'payload': ...}}, ...]")
    try:
        return queue.message(**fields)
    except TypeError as error:
        raise InvalidMessage(field="item", reason=f"it does not fit publish: {error}") from error
