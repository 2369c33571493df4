"""What a handler sees of its task: declare a first parameter annotated `TaskContext`."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

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


class TaskContext:
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
        self.task = task
        self.lost = lost
        self.logger = logging.LoggerAdapter(
            logging.getLogger(f"sa_taskqueue.task.{task.name}"),
            {"task_id": str(task.id), "task_name": task.name, "attempt": task.attempt},
        )
        self._open_session = open_session
        self._session: Any = None
        self._extend = extend
        self._aextend = aextend

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

    @property
    def session(self) -> Session:
        """A session whose work is committed together with the task's completion, or not at all.

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
