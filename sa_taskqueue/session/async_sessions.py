"""`AsyncTaskSession`; its own module because SQLAlchemy's asyncio extension needs greenlet."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack, cast, overload
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from sa_taskqueue.session.bulk import Arguments
from sa_taskqueue.session.bulk import enqueue_many as _enqueue_many
from sa_taskqueue.session.by_statement import enqueue_from as _enqueue_from
from sa_taskqueue.session.enqueue import enqueue as _enqueue
from sa_taskqueue.session.inbox import Gaps
from sa_taskqueue.session.methods import first_time as _first_time
from sa_taskqueue.session.methods import publish as _publish
from sa_taskqueue.session.methods import publish_from as _publish_from
from sa_taskqueue.session.methods import publish_many as _publish_many
from sa_taskqueue.session.publishing import Fields
from sa_taskqueue.session.sessions import TaskSession

if TYPE_CHECKING:
    from sqlalchemy import Row

    from sa_taskqueue.definitions import BoundTask, NewTask, TaskDefinition
    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.session.by_statement import AnyTask, Counted, Returning, Ts
    from sa_taskqueue.session.publish_by_statement import FromOptions

P = ParamSpec("P")


class AsyncTaskSession(AsyncSession):
    """SQLAlchemy's AsyncSession with `enqueue`: `async_sessionmaker(engine, class_=AsyncTaskSession)`."""

    sync_session_class = TaskSession

    def enqueue(self, task: TaskDefinition[P, Any] | BoundTask[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Store a task in this transaction; nothing to await. See `sa_taskqueue.enqueue`."""
        return _enqueue(self, task, *args, **kwargs)

    async def enqueue_many(
        self, task: TaskDefinition[Any, Any] | BoundTask[Any, Any], arguments: Iterable[Arguments | NewTask], /
    ) -> list[UUID]:
        """Store many tasks in this transaction; see `sa_taskqueue.enqueue_many`."""
        return await _enqueue_many(self, task, arguments)

    @overload
    async def enqueue_from(  # pyright: ignore[reportOverlappingOverload]  # with RETURNING it is of both kinds
        self, statement: Returning[*Ts], task: AnyTask, /, **arguments: Any
    ) -> Sequence[Row[*Ts]]: ...
    @overload
    async def enqueue_from(self, statement: Counted, task: AnyTask, /, **arguments: Any) -> int: ...
    async def enqueue_from(self, statement: Any, task: AnyTask, /, **arguments: Any) -> Any:
        """Make a change and store a task for each row it touches; see `sa_taskqueue.enqueue_from`."""
        return await _enqueue_from(self, statement, task, **arguments)

    def publish(
        self,
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
        """Store a message in this transaction; nothing to await; see `sa_taskqueue.publish`."""
        return _publish(
            self,
            topic,
            payload,
            key=key,
            headers=headers,
            type=type,
            run_after=run_after,
            ordered=ordered,
            id=id,
        )

    async def publish_many(self, messages: Iterable[Fields | NewMessage], /) -> list[UUID]:
        """Store many messages in this transaction; see `sa_taskqueue.publish_many`."""
        return await cast("Awaitable[list[UUID]]", _publish_many(self, messages))

    async def first_time(
        self,
        message_id: str | UUID,
        *,
        source: str = "",
        key: str | None = None,
        seq: int | None = None,
        gaps: Gaps = "refuse",
    ) -> bool:
        """Tell whether this message is to be handled, and remember it; see `sa_taskqueue.first_time`."""
        return await cast("Awaitable[bool]", _first_time(self, message_id, source=source, key=key, seq=seq, gaps=gaps))

    @overload
    async def publish_from(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # both kinds
        self, statement: Returning[*Ts], topic: str, payload: object, **options: Unpack[FromOptions]
    ) -> Sequence[Row[*Ts]]: ...
    @overload
    async def publish_from(
        self, statement: Counted, topic: str, payload: object, **options: Unpack[FromOptions]
    ) -> int: ...
    async def publish_from(self, statement: Any, topic: str, payload: object, **options: Unpack[FromOptions]) -> Any:
        """Store a message for each row of a statement; see `sa_taskqueue.publish_from`."""
        return await _publish_from(self, statement, topic, payload, **options)
