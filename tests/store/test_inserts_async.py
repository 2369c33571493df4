"""Batched INSERT and COPY on async drivers, through `run_sync`.

aiomysql is not among them: 0.3.2 cannot send bytes, and with them no id, beside PyMySQL 1.2.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from sqlalchemy import Connection, Table, func, select

from sa_taskqueue.store.copying import COPY_THRESHOLD
from sa_taskqueue.store.inserts import insert_many
from tests.store.new_tasks import new_task

pytestmark = [pytest.mark.every_driver, pytest.mark.servers("sqlite", "postgresql", "postgresql18")]

MANY = COPY_THRESHOLD * 3


def count(connection: Connection, table: Table) -> int | None:
    return connection.scalar(select(func.count()).select_from(table))


@pytest.mark.parametrize("size", [1, MANY])
async def test_async_drivers_keep_it_in_the_transaction(async_engine: Any, tasks: Table, size: int) -> None:
    given = [new_task(delay=dt.timedelta(seconds=5)) for _ in range(size)]
    async with async_engine.connect() as connection:
        await connection.run_sync(insert_many, tasks, given)
        await connection.rollback()
        assert await connection.run_sync(count, tasks) == 0
    async with async_engine.begin() as connection:
        await connection.run_sync(insert_many, tasks, given)
        async with connection.begin_nested() as savepoint:
            await connection.run_sync(insert_many, tasks, [new_task() for _ in range(size)])
            await savepoint.rollback()
    async with async_engine.connect() as connection:
        assert await connection.run_sync(count, tasks) == size
