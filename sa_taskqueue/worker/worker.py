"""`Worker`: the public face of the loop that runs tasks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from sqlalchemy import Engine

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.reservation import Lease, Reservation
from sa_taskqueue.runtime.holder import holder_name
from sa_taskqueue.runtime.signals import signals
from sa_taskqueue.runtime.stop import Stop
from sa_taskqueue.runtime.threads import call_soon
from sa_taskqueue.worker.counts import Counts
from sa_taskqueue.worker.crew import Crew
from sa_taskqueue.worker.settings import DEFAULT_CONCURRENCY, RECYCLE, WorkerOptions, WorkerSettings

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sa_taskqueue.queue import TaskQueue

logger = logging.getLogger("sa_taskqueue.worker")


class Worker:
    """Runs the tasks of some queues, over an Engine or an AsyncEngine, with sync and async handlers together.

    ``queues`` are names, each with the number of handlers that run at once; a plain name list gives 10 to each, nothing
    the task queue's default queue. ``reservation`` says how tasks are held, by default `Lease()`. The other settings
    are those of `WorkerSettings`. A worker runs once.
    """

    def __init__(
        self,
        queue: TaskQueue,
        engine: Engine | AsyncEngine,
        *,
        queues: Mapping[str, int] | list[str] | None = None,
        reservation: Reservation | None = None,
        name: str = "",
        **settings: Unpack[WorkerOptions],
    ) -> None:
        if not isinstance(getattr(engine, "sync_engine", engine), Engine):
            allowed = "an Engine or AsyncEngine, such as sqlite_engine(url) or create_engine(url)"
            raise InvalidSetting(setting="engine", value=_kind(engine), allowed=allowed)
        self.settings = WorkerSettings(
            queues=_with_concurrency(queues or [queue.default_queue]), name=name or holder_name(), **settings
        )
        self.counts = Counts()
        self.exit_code = 0
        """0, or 75 when the worker asks to be started again because handlers hang in threads."""
        self._queue = queue
        self._engine = engine
        self._reservation = reservation or Lease()
        self._lock = threading.Lock()
        self._stops_before_start = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Stop | None = None

    def run(self) -> int:
        """Serve until SIGINT, SIGTERM or `stop`; the exit code. A second signal ends the grace time."""
        return asyncio.run(self._run_with_signals())

    async def serve(self) -> None:
        """Serve on the running loop until `stop` or the end of the work. Cancelling it winds down as well."""
        stop = self._begin()
        logger.info("worker %s serves %s", self.settings.name, dict(self.settings.queues))
        async with Crew.hired(self._queue, self._engine, self._reservation, self.settings, self.counts, stop) as crew:
            if crew is not None:
                await crew.work()
        if crew is not None and crew.recycle:
            self.exit_code = RECYCLE
        logger.info("worker %s has ended: %s", self.settings.name, self.counts)

    def stop(self) -> None:
        """Take no more tasks, and end within the grace time; a second call ends that at once. From any thread."""
        with self._lock:
            if self._loop is None or self._stop is None:
                self._stops_before_start += 1
                return
            call_soon(self._loop, self._stop.request)

    def _begin(self) -> Stop:
        with self._lock:
            if self._stop is not None:
                raise RuntimeError("a Worker runs once; make another")
            self._loop, self._stop = asyncio.get_running_loop(), Stop()
            for _ in range(self._stops_before_start):
                self._stop.request()
            return self._stop

    async def _run_with_signals(self) -> int:
        with signals(asyncio.get_running_loop(), self.stop):
            await self.serve()
        return self.exit_code


def _kind(engine: object) -> str:
    """Not the value: a URL may hold a password."""
    return f"the class {engine.__qualname__}" if isinstance(engine, type) else f"a {type(engine).__qualname__}"


def _with_concurrency(queues: Mapping[str, int] | list[str]) -> dict[str, int]:
    if isinstance(queues, Mapping):
        return dict(queues)
    return dict.fromkeys(queues, DEFAULT_CONCURRENCY)
