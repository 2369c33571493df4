"""What a handler sees of its task or tasks: declare a first parameter annotated `TaskContext` or `BatchContext`."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from sa_taskqueue.items import Items

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session


class TaskInfo(Protocol):
    """The row of the running task, as it was when it was claimed."""

    @property
    def id(self) -> UUID: ...
    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def headers(self) -> str | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def crashes(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def scheduled_at(self) -> datetime | None: ...
    @property
    def created_at(self) -> datetime: ...


class HandlerContext:
    """What every handler may do with what it holds.

    ``lost`` is set when the lease of a task is gone or the time is up: stop then, because nothing the
    handler still does in its session will be kept.
    """

    def __init__(
        self,
        *,
        lost: threading.Event,
        open_session: Callable[[], Any],
        extend: Callable[[float], None],
        aextend: Callable[[float], Awaitable[None]],
    ) -> None:
        self.lost = lost
        self._open_session = open_session
        self._session: Any = None
        self._extend = extend
        self._aextend = aextend

    @property
    def session(self) -> Session:
        """A session whose work is committed together with the completion, or not at all.

        It is opened at the first use. Its commit, rollback and begin only move savepoints.
        """
        session: Session = self._opened()
        return session

    @property
    def async_session(self) -> AsyncSession:
        """The same for an async handler of a worker with an AsyncEngine."""
        session: AsyncSession = self._opened()
        return session

    def extend(self, seconds: float) -> None:
        """Hold the task for at least so many seconds from now, from a sync handler; raises LeaseLost if it is lost."""
        self._extend(seconds)

    async def aextend(self, seconds: float) -> None:
        """The same as `extend`, for an async handler."""
        await self._aextend(seconds)

    def _opened(self) -> Any:
        if self._session is None:
            self._session = self._open_session()
        return self._session


class TaskContext(HandlerContext):
    """The running task, and what the worker lets its handler do.

    ``lost`` is set when the lease is gone or the task's time is up: stop then, because nothing the
    handler still does in its session will be kept.
    """

    def __init__(
        self,
        task: TaskInfo,
        *,
        lost: threading.Event,
        open_session: Callable[[], Any],
        extend: Callable[[float], None],
        aextend: Callable[[float], Awaitable[None]],
    ) -> None:
        super().__init__(lost=lost, open_session=open_session, extend=extend, aextend=aextend)
        self.task = task
        self.logger = logging.LoggerAdapter(
            logging.getLogger(f"sa_taskqueue.task.{task.name}"),
            {"task_id": str(task.id), "task_name": task.name, "attempt": task.attempt},
        )

    @property
    def attempt(self) -> int:
        """How often the task was claimed, this time included."""
        return self.task.attempt

    @property
    def headers(self) -> Mapping[str, str]:
        """What `.using(headers=...)` gave."""
        return json.loads(self.task.headers) if self.task.headers else {}

    @property
    def idempotency_key(self) -> str:
        """The same text over all attempts, for services that drop what they have seen."""
        return str(self.task.id)

    @property
    def fencing_token(self) -> int:
        """A number that rises with every holder, for services that refuse an older one."""
        return self.task.epoch


class ItemScope(Protocol):
    """What `BatchContext.savepoint` gives: for ``with`` in a sync handler, for ``async with`` in an async one."""

    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool: ...
    async def __aenter__(self) -> None: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool: ...


class BatchContext(HandlerContext):
    """The tasks of a range handler, and what the worker lets it do.

    ``tasks`` stand in the order of the items. All work in ``session`` is one transaction together with all
    completions. ``lost`` is set when one of the tasks is lost or the time is up: nothing done in the session is kept
    then, and the tasks still held go back to be run again.
    """

    def __init__(
        self,
        tasks: Sequence[TaskInfo],
        items: Items,
        *,
        savepoint: Callable[[int], ItemScope],
        lost: threading.Event,
        open_session: Callable[[], Any],
        extend: Callable[[float], None],
        aextend: Callable[[float], Awaitable[None]],
    ) -> None:
        super().__init__(lost=lost, open_session=open_session, extend=extend, aextend=aextend)
        self.tasks = tasks
        self._items = items
        self._savepoint = savepoint
        name = tasks[0].name
        self.logger = logging.LoggerAdapter(
            logging.getLogger(f"sa_taskqueue.task.{name}"), {"task_name": name, "tasks": len(tasks)}
        )

    def task(self, item: object) -> TaskInfo:
        """The task of an item that the handler was given; raises UnknownItem for any other object."""
        return self.tasks[self._items.index(item)]

    def headers(self, item: object) -> Mapping[str, str]:
        """What `.using(headers=...)` gave with this item."""
        headers = self.task(item).headers
        return json.loads(headers) if headers else {}

    def idempotency_key(self, item: object) -> str:
        """The same text over all attempts, for services that drop what they have seen."""
        return str(self.task(item).id)

    def fencing_token(self, item: object) -> int:
        """A number that rises with every holder, for services that refuse an older one."""
        return self.task(item).epoch

    def savepoint(self, item: object) -> ItemScope:
        """Do one item's part of the work: ``with`` in a sync handler, ``async with`` in an async one.

        An exception of the block undoes the database work of the block, decides about this item's task alone, by its
        retry policy or as the outcome says that was raised, and is not passed on: go on with the next item.
        Deadlocks, broken connections and what else ends the whole transaction are passed on.
        """
        return self._savepoint(self._items.index(item))
