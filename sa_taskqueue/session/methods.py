"""What sessions of each kind have as methods: the functions of the same names, without the queue as an argument."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any

from sa_taskqueue.session import inbox, publish_by_statement, publishing
from sa_taskqueue.session.queues import queue_of
from sa_taskqueue.session.targets import AnySession, sync_session

if TYPE_CHECKING:
    from uuid import UUID

    from sa_taskqueue.messages import NewMessage


def publish(session: AnySession, topic: str, payload: object, **options: Any) -> Any:
    """Store a message in the session's transaction; see `sa_taskqueue.publish`."""
    queue = queue_of(sync_session(session), "outbox", "publish(session, queue, ...)")
    return publishing.publish(session, queue, topic, payload, **options)


def publish_from(session: AnySession, statement: Any, topic: str, payload: object, **options: Any) -> Any:
    """Store a message for each row of a statement; see `sa_taskqueue.publish_from`."""
    queue = queue_of(sync_session(session), "outbox", "publish_from(session, queue, ...)")
    return publish_by_statement.publish_from(session, queue, statement, topic, payload, **options)


def publish_many(
    session: AnySession, messages: Iterable[publishing.Fields | NewMessage], /
) -> list[UUID] | Awaitable[list[UUID]]:
    """Store many messages in the session's transaction; see `sa_taskqueue.publish_many`."""
    queue = queue_of(sync_session(session), "outbox", "publish_many(session, queue, ...)")
    return publishing.publish_many(session, queue, messages)


def first_time(session: AnySession, message_id: str | UUID, **options: Any) -> bool | Awaitable[bool]:
    """Tell whether a message is to be handled, and remember it; see `sa_taskqueue.first_time`."""
    queue = queue_of(sync_session(session), "inbox", "first_time(session, queue, ...)")
    return inbox.first_time(session, queue, message_id, **options)
