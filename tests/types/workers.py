# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from sa_taskqueue import Lease, Worker
from tests.types.tasks import queue


def workers(engine: Engine, async_engine: AsyncEngine) -> None:
    Worker(queue, engine).run()
    Worker(queue, async_engine, queues={"mail": 20}, reservation=Lease(), lease=60.0, grace=30.0, drain=True).run()
    Worker(queue, "sqlite:///tasks.db")  # type: ignore[arg-type]
    Worker(queue, engine, lease="60 s")  # type: ignore[arg-type]
    Worker(queue, engine, leese=60.0)  # type: ignore[call-arg]


async def served(engine: AsyncEngine) -> None:
    worker = Worker(queue, engine)
    await worker.serve()
    worker.stop()
