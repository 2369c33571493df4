"""The same through PGQueuer over asyncpg: ``python -m benchmarks.listeners.peer DSN COUNT``."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine
from typing import Any, Self

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

ENTRYPOINT = "bench"


class Producer:
    """Enqueues from synchronous code on one connection that stays open; makes PGQueuer's tables and drops them."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._connection = self._run(asyncpg.connect(self._dsn))
        self._queries = Queries(AsyncpgDriver(self._connection))
        self._run(self._queries.install())
        return self

    def __exit__(self, *details: object) -> None:
        self._run(self._queries.uninstall())
        self._run(self._connection.close())
        self._loop.close()

    def send(self) -> None:
        self._run(self._queries.enqueue(ENTRYPOINT, repr(time.monotonic()).encode()))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)


async def listen(dsn: str, count: int) -> list[float]:
    """Run a manager until ``count`` jobs have started."""
    manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn)))
    delays: list[float] = []

    @manager.entrypoint(ENTRYPOINT)
    async def note(job: Job) -> None:
        assert job.payload is not None
        delays.append((time.monotonic() - float(job.payload)) * 1000)
        if len(delays) == count:
            manager.shutdown.set()

    await manager.run(batch_size=10)
    return delays


def main(dsn: str, count: int) -> None:
    print("ready", flush=True)
    print(json.dumps(asyncio.run(listen(dsn, count))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
