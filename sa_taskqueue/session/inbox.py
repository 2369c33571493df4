"""`first_time`: whether a message was handled already, known and remembered in the handler's own transaction."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal, cast, overload
from uuid import UUID

from sa_taskqueue import validation
from sa_taskqueue.exceptions import InvalidMessage, InvalidSetting, MessageGap
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session.enqueue import refuse_ended
from sa_taskqueue.session.hooks import hook, refuse_unsafe_once
from sa_taskqueue.session.pending import inbox_of, unit_of_work
from sa_taskqueue.session.targets import AnySession, AsyncTarget, SyncTarget, async_session, is_async, sync_session
from sa_taskqueue.store import inbox
from sa_taskqueue.store.errors import named_errors

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Gaps = Literal["refuse", "accept"]

MESSAGE_ID_LIMIT = 1024
MOST = 2**63 - 1
"""The greatest BIGINT."""


@overload
def first_time(
    session: SyncTarget,
    queue: TaskQueue,
    message_id: str | UUID,
    *,
    source: str = "",
    key: str | None = None,
    seq: int | None = None,
    gaps: Gaps = "refuse",
) -> bool: ...
@overload
def first_time(
    session: AsyncTarget,
    queue: TaskQueue,
    message_id: str | UUID,
    *,
    source: str = "",
    key: str | None = None,
    seq: int | None = None,
    gaps: Gaps = "refuse",
) -> Awaitable[bool]: ...
def first_time(
    session: AnySession,
    queue: TaskQueue,
    message_id: str | UUID,
    *,
    source: str = "",
    key: str | None = None,
    seq: int | None = None,
    gaps: Gaps = "refuse",
) -> bool | Awaitable[bool]:
    """Tell whether this message is to be handled; the answer is remembered if the session's transaction commits.

    False: it was handled before, and its handler committed. While another transaction has the same message, this waits
    for its end. With ``key`` and ``seq`` messages of a key are applied in order: an old one is False, and where some
    are missing before it MessageGap is raised, so that the broker brings it again; ``gaps="accept"`` takes it, for
    consumers that get only some of a key's messages. It writes at once, so it is awaited on an AsyncSession.
    """
    if not isinstance(queue, TaskQueue):
        raise InvalidSetting(
            setting="queue", value=queue, allowed="a TaskQueue: first_time(session, queue, message_id)"
        )
    asked = _Question(queue, message_id, source, key, seq, gaps)
    if is_async(session):
        return async_session(cast("AsyncTarget", session)).run_sync(asked.ask)
    return asked.ask(sync_session(session))


class _Question:
    """What was asked, checked."""

    def __init__(
        self, queue: TaskQueue, message_id: str | UUID, source: str, key: str | None, seq: int | None, gaps: str
    ) -> None:
        validation.check_choice("gaps", gaps, ("refuse", "accept"))
        self._queue = queue
        self._table = queue.inbox_table
        given: Any = str(message_id) if isinstance(message_id, UUID) else message_id
        self._id = validation.check_message_text("id", given, MESSAGE_ID_LIMIT)
        self._source = source and validation.check_message_text("source", source, validation.SOURCE_LIMIT)
        self._key = key if key is None else validation.check_message_text("key", key, validation.UNIQUE_KEY_LIMIT)
        self._seq = seq
        self._gaps = gaps == "accept"
        if seq is not None:
            if not validation.whole_number(seq) or not 0 <= seq <= MOST:
                raise InvalidMessage(field="seq", reason="it must be a whole number, not negative")
            if key is None:
                raise InvalidMessage(field="seq", reason="it needs the key that it counts the messages of")

    def ask(self, session: Session) -> bool:
        refuse_ended(session, self._id)
        hook(session)
        refuse_unsafe_once(session, unit_of_work(session), inbox_of(self._queue))
        connection = session.connection(bind_arguments={"mapper": self._queue.inbox})
        with named_errors(self._table, connection.engine):
            if self._key is None or self._seq is None:
                return inbox.first_time(connection, self._table, self._source, self._id)
            answer = inbox.in_order(
                connection, self._table, self._source, self._id, self._key, self._seq, gaps=self._gaps
            )
        if answer.verdict is inbox.Verdict.GAP:
            raise MessageGap(id=self._id, key=self._key, seq=self._seq, last=answer.last)
        return answer.verdict is inbox.Verdict.APPLY
