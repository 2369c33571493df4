"""`Relay`: the public face of what carries messages to brokers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from sqlalchemy import Engine

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.relay.counts import RelayCounts
from sa_taskqueue.relay.routes import Destination, Routes
from sa_taskqueue.relay.run import Run
from sa_taskqueue.relay.settings import RelayOptions, RelaySettings
from sa_taskqueue.runtime.holder import holder_name
from sa_taskqueue.runtime.signals import signals
from sa_taskqueue.runtime.stop import Stop
from sa_taskqueue.runtime.threads import call_soon

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sa_taskqueue.queue import TaskQueue

logger = logging.getLogger("sa_taskqueue.relay")


class Relay:
    """Carries the messages of a queue's outbox to brokers, over an Engine or an AsyncEngine; several may run at once.

    ``to`` is a broker's URL, a publisher, a function, or a mapping of topic patterns to these: the first that fits
    wins. The other settings are those of `RelaySettings`. Each message leaves at least once; those of one key in the
    order of their commits. A relay runs once.
    """

    def __init__(
        self,
        queue: TaskQueue,
        engine: Engine | AsyncEngine,
        *,
        to: Destination | Mapping[str, Destination],
        name: str = "",
        **settings: Unpack[RelayOptions],
    ) -> None:
        if not isinstance(getattr(engine, "sync_engine", engine), Engine):
            allowed = "an Engine or AsyncEngine, such as sqlite_engine(url) or create_engine(url)"
            raise InvalidSetting(setting="engine", value=type(engine).__qualname__, allowed=allowed)
        self.settings = RelaySettings(name=name or holder_name(), **settings)
        self.counts = RelayCounts()
        self._queue, self._engine = queue, engine
        self._routes = Routes(to)
        self._lock = threading.Lock()
        self._stops_before_start = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Stop | None = None

    def run(self) -> int:
        """Serve until SIGINT, SIGTERM or `stop`; the exit code, 0. A second signal ends the grace time."""
        return asyncio.run(self._run_with_signals())

    async def serve(self) -> None:
        """Serve on the running loop until `stop` or, with `drain`, the end of the work. Cancelling it winds down."""
        stop = self._begin()
        logger.info("relay %s serves %s", self.settings.name, self._queue.outbox_table.fullname)
        async with Run.started(self._queue, self._engine, self._routes, self.settings, self.counts, stop) as run:
            if run is not None:
                await run.work()
        logger.info("relay %s has ended: %s", self.settings.name, self.counts)

    def stop(self) -> None:
        """Claim no more, and end within the grace time; a second call ends that at once. From any thread."""
        with self._lock:
            if self._loop is None or self._stop is None:
                self._stops_before_start += 1
                return
            call_soon(self._loop, self._stop.request)

    def _begin(self) -> Stop:
        with self._lock:
            if self._stop is not None:
                raise RuntimeError("a Relay runs once; make another")
            self._loop, self._stop = asyncio.get_running_loop(), Stop()
            for _ in range(self._stops_before_start):
                self._stop.request()
            return self._stop

    async def _run_with_signals(self) -> int:
        with signals(asyncio.get_running_loop(), self.stop):
            await self.serve()
        return 0
