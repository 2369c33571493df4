"""R18: a request cancelled at any await leaves no half-open transaction, and its task is stored or it is not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import async_sessionmaker

from tests.session.models import Customer, Job, send_receipt

Stored = Callable[..., list[Any]]
Count = Callable[[type[Any]], int]


@pytest.mark.every_driver
@pytest.mark.servers("sqlite", "postgresql")
async def test_cancelled_at_random_awaits(async_engine: Any, jobs: type[Job], stored: Stored, count: Count) -> None:
    from sa_taskqueue.session import AsyncTaskSession

    factory = async_sessionmaker(async_engine, class_=AsyncTaskSession)

    async def request() -> None:
        async with factory.begin() as session:
            session.add(Customer(name="Ada"))
            session.enqueue(send_receipt, 1)
            await session.flush()
            async with session.begin_nested():
                session.enqueue(send_receipt.using(unique_key=str(random.random())), 2)

    outcomes = []
    for turn in range(60):
        running = asyncio.ensure_future(request())
        for _ in range(turn % 30):
            await asyncio.sleep(0)
        running.cancel()
        outcomes.append(await asyncio.gather(running, return_exceptions=True))
    assert any(isinstance(outcome[0], asyncio.CancelledError) for outcome in outcomes)
    async with factory.begin() as session:
        session.enqueue(send_receipt, 3)
    assert len(stored()) == 2 * count(Customer) + 1
