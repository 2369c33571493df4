"""`publish_from`: messages for all rows that a statement changes or finds, made by the database itself."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

from sa_taskqueue.columns import expression_of
from sa_taskqueue.message_columns import MessageColumns
from sa_taskqueue.session.by_statement import insert_rows, refuse_other_database
from sa_taskqueue.session.enqueue import refuse_ended
from sa_taskqueue.session.hooks import hook, refuse_unsafe_once
from sa_taskqueue.session.pending import outbox_of, unit_of_work
from sa_taskqueue.session.publishing import checked_queue, written
from sa_taskqueue.session.statements import Support, check_statement
from sa_taskqueue.session.targets import AnySession, AsyncTarget, SyncTarget, async_session, is_async, sync_session
from sa_taskqueue.store.by_statement import NewRows, give_functions, inserted_since, now_floor

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.orm import Session

    from sa_taskqueue.queue import TaskQueue
    from sa_taskqueue.session.by_statement import Counted, Returning, Ts


class FromOptions(TypedDict, total=False):
    """What `publish_from` takes by keyword."""

    key: Any
    headers: Mapping[str, str] | None
    type: str | None
    run_after: datetime | timedelta | None
    ordered: bool


@overload
def publish_from(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # it is of both kinds
    session: SyncTarget,
    queue: TaskQueue,
    statement: Returning[*Ts],
    topic: str,
    payload: object,
    **options: Unpack[FromOptions],
) -> Sequence[Row[*Ts]]: ...
@overload
def publish_from(
    session: SyncTarget,
    queue: TaskQueue,
    statement: Counted,
    topic: str,
    payload: object,
    **options: Unpack[FromOptions],
) -> int: ...
@overload
def publish_from(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # likewise
    session: AsyncTarget,
    queue: TaskQueue,
    statement: Returning[*Ts],
    topic: str,
    payload: object,
    **options: Unpack[FromOptions],
) -> Awaitable[Sequence[Row[*Ts]]]: ...
@overload
def publish_from(
    session: AsyncTarget,
    queue: TaskQueue,
    statement: Counted,
    topic: str,
    payload: object,
    **options: Unpack[FromOptions],
) -> Awaitable[int]: ...
def publish_from(
    session: AnySession,
    queue: TaskQueue,
    statement: Any,
    topic: str,
    payload: object,
    *,
    key: Any = None,
    headers: Mapping[str, str] | None = None,
    type: str | None = None,  # noqa: A002 - it is the column's name
    run_after: datetime | timedelta | None = None,
    ordered: bool = True,
) -> Any:
    """Execute a statement and store a message for each row of it, as `enqueue_from` does with tasks.

    ``payload`` is a plain value, or a mapping whose values are columns, expressions or plain values. ``key`` is text or
    a column of text, whole numbers or UUIDs; where it is NULL the message has none. Messages with an ordered key get
    their numbers before the commit, for which their ids, but nothing else, come to Python; among those of one
    statement the order is open. Returns what `enqueue_from` returns, and is awaited on an AsyncSession likewise.
    """
    expression = expression_of(key)
    plain = checked_queue(queue).message(
        topic,
        None if isinstance(payload, Mapping) else payload,
        key="x" if expression is not None else key,
        headers=headers,
        type=type,
        run_after=run_after,
        ordered=ordered,
    )
    given = MessageColumns(plain, payload, expression)
    if is_async(session):
        return async_session(cast("AsyncTarget", session)).run_sync(_write, queue, statement, given)
    return _write(sync_session(session), queue, statement, given)


def _write(session: Session, queue: TaskQueue, statement: Any, given: MessageColumns) -> Any:
    check_statement(statement)
    given.check()
    model = cast("type[Any]", queue.outbox)
    refuse_ended(session, given.plain.topic)
    refuse_other_database(session, model, statement)
    hook(session)
    work = unit_of_work(session)
    refuse_unsafe_once(session, work, outbox_of(queue))
    connection = session.connection(bind_arguments={"mapper": model})
    support = Support("publish_from", connection.dialect)
    derivation = support.derivation()
    support.check(session, statement)
    rows = NewRows(queue.outbox_table, *given.values(queue, connection.dialect, mark=given.numbered))
    session.flush()
    connection = session.connection(bind_arguments={"mapper": model})
    give_functions(connection, derivation)
    floor = now_floor(connection) if given.numbered else None
    outcome = insert_rows(session, model, statement, rows, given.plain.topic)
    if outcome.count:
        ids = inserted_since(session.connection(bind_arguments={"mapper": model}), rows, floor) if floor else []
        written(session, work, queue, ids)
    return outcome.count if outcome.rows is None else outcome.rows
