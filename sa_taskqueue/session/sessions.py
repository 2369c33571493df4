"""Session classes with `enqueue` and its like, typed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, overload

from sqlalchemy.orm import Session

from sa_taskqueue.session.bulk import Arguments
from sa_taskqueue.session.bulk import enqueue_many as _enqueue_many
from sa_taskqueue.session.by_statement import enqueue_from as _enqueue_from
from sa_taskqueue.session.enqueue import enqueue as _enqueue
from sa_taskqueue.session.hooks import hook

if TYPE_CHECKING:
    from sqlalchemy import Row

    from sa_taskqueue.definitions import BoundTask, NewTask, TaskDefinition
    from sa_taskqueue.session.by_statement import AnyTask, Counted, Returning, Ts

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
    ) -> list[uuid.UUID]:
        """Store many tasks in this transaction; see `sa_taskqueue.enqueue_many`."""
        return _enqueue_many(self, task, arguments)  # type: ignore[call-overload, no-any-return]

    @overload
    def enqueue_from(self, statement: Returning[*Ts], task: AnyTask, /, **arguments: Any) -> Sequence[Row[*Ts]]: ...
    @overload
    def enqueue_from(self, statement: Counted, task: AnyTask, /, **arguments: Any) -> int: ...
    def enqueue_from(self, statement: Any, task: AnyTask, /, **arguments: Any) -> Any:
        """Make a change and store a task for each row it touches; see `sa_taskqueue.enqueue_from`."""
        return _enqueue_from(self, statement, task, **arguments)  # type: ignore[call-overload]


class TaskSession(TaskSessionMixin, Session):
    """SQLAlchemy's Session with `enqueue`: `sessionmaker(engine, class_=TaskSession)`."""
