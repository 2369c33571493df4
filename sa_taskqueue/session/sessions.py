"""Session classes with `enqueue` and its like, typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack, cast, overload
from uuid import UUID

from sqlalchemy.orm import Session

from sa_taskqueue.session.bulk import Arguments
from sa_taskqueue.session.bulk import enqueue_many as _enqueue_many
from sa_taskqueue.session.by_statement import enqueue_from as _enqueue_from
from sa_taskqueue.session.enqueue import enqueue as _enqueue
from sa_taskqueue.session.hooks import hook
from sa_taskqueue.session.inbox import Gaps
from sa_taskqueue.session.methods import first_time as _first_time
from sa_taskqueue.session.methods import publish as _publish
from sa_taskqueue.session.methods import publish_from as _publish_from
from sa_taskqueue.session.methods import publish_many as _publish_many
from sa_taskqueue.session.publishing import Fields

if TYPE_CHECKING:
    from sqlalchemy import Row

    from sa_taskqueue.definitions import BoundTask, NewTask, TaskDefinition
    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.session.by_statement import AnyTask, Counted, Returning, Ts
    from sa_taskqueue.session.publish_by_statement import FromOptions

P = ParamSpec("P")


class TaskSessionMixin:
    """Gives another Session class (Flask-SQLAlchemy's, your own) the methods: `class S(TaskSessionMixin, Session)`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if issubclass(cls, Session):
            hook(cls)

    def enqueue(self, task: TaskDefinition[P, Any] | BoundTask[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Store a task in this transaction; see `sa_taskqueue.enqueue`."""
        return _enqueue(self, task, *args, **kwargs)  # type: ignore[arg-type]

    def enqueue_many(
        self, task: TaskDefinition[Any, Any] | BoundTask[Any, Any], arguments: Iterable[Arguments | NewTask], /
    ) -> list[UUID]:
        """Store many tasks in this transaction; see `sa_taskqueue.enqueue_many`."""
        return _enqueue_many(self, task, arguments)  # type: ignore[call-overload, no-any-return]

    @overload
    def enqueue_from(  # pyright: ignore[reportOverlappingOverload]  # with RETURNING it is of both kinds
        self, statement: Returning[*Ts], task: AnyTask, /, **arguments: Any
    ) -> Sequence[Row[*Ts]]: ...
    @overload
    def enqueue_from(self, statement: Counted, task: AnyTask, /, **arguments: Any) -> int: ...
    def enqueue_from(self, statement: Any, task: AnyTask, /, **arguments: Any) -> Any:
        """Make a change and store a task for each row it touches; see `sa_taskqueue.enqueue_from`."""
        return _enqueue_from(self, statement, task, **arguments)  # type: ignore[call-overload]

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
        """Store a message in this transaction; see `sa_taskqueue.publish`."""
        return _publish(
            self,  # type: ignore[arg-type]
            topic,
            payload,
            key=key,
            headers=headers,
            type=type,
            run_after=run_after,
            ordered=ordered,
            id=id,
        )

    def publish_many(self, messages: Iterable[Fields | NewMessage], /) -> list[UUID]:
        """Store many messages in this transaction; see `sa_taskqueue.publish_many`."""
        return _publish_many(self, messages)  # type: ignore[arg-type, return-value]

    def first_time(
        self,
        message_id: str | UUID,
        *,
        source: str = "",
        key: str | None = None,
        seq: int | None = None,
        gaps: Gaps = "refuse",
    ) -> bool:
        """Tell whether this message is to be handled, and remember it; see `sa_taskqueue.first_time`."""
        return cast("bool", _first_time(self, message_id, source=source, key=key, seq=seq, gaps=gaps))  # type: ignore[arg-type]

    @overload
    def publish_from(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]  # of both kinds
        self, statement: Returning[*Ts], topic: str, payload: object, **options: Unpack[FromOptions]
    ) -> Sequence[Row[*Ts]]: ...
    @overload
    def publish_from(self, statement: Counted, topic: str, payload: object, **options: Unpack[FromOptions]) -> int: ...
    def publish_from(self, statement: Any, topic: str, payload: object, **options: Unpack[FromOptions]) -> Any:
        """Store a message for each row of a statement; see `sa_taskqueue.publish_from`."""
        return _publish_from(self, statement, topic, payload, **options)  # type: ignore[arg-type]


class TaskSession(TaskSessionMixin, Session):
    """SQLAlchemy's Session with `enqueue` and `publish`: `sessionmaker(engine, class_=TaskSession)`."""
