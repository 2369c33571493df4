"""`AsyncTaskSession`; its own module because SQLAlchemy's asyncio extension needs greenlet."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ParamSpec

from sqlalchemy.ext.asyncio import AsyncSession

from sa_taskqueue.session.bulk import Arguments
from sa_taskqueue.session.bulk import enqueue_many as _enqueue_many
from sa_taskqueue.session.enqueue import enqueue as _enqueue
from sa_taskqueue.session.sessions import TaskSession

if TYPE_CHECKING:
    from sa_taskqueue.definitions import BoundTask, NewTask, TaskDefinition

P = ParamSpec("P")


class AsyncTaskSession(AsyncSession):
    """SQLAlchemy's AsyncSession with `enqueue`: `async_sessionmaker(engine, class_=AsyncTaskSession)`."""

    sync_session_class = TaskSession

    def enqueue(self, task: TaskDefinition[P, Any] | BoundTask[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Store a task in this transaction; nothing to await. See `sa_taskqueue.enqueue`."""
        return _enqueue(self, task, *args, **kwargs)

    async def enqueue_many(
        self, task: TaskDefinition[Any, Any] | BoundTask[Any, Any], arguments: Iterable[Arguments | NewTask], /
    ) -> list[uuid.UUID]:
        """Store many tasks in this transaction; see `sa_taskqueue.enqueue_many`."""
        return await _enqueue_many(self, task, arguments)
