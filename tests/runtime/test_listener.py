from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.runtime.listener import Listener, checked_channel
from tests.support import eventually_async
from tests.tcp_proxy import TcpProxy

CHANNEL = "sa_taskqueue_test"


class Heard:
    """Counts wake-ups."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1

    async def more_than(self, count: int) -> None:
        await eventually_async(lambda: self.count > count)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@contextlib.asynccontextmanager
async def listening(engine: Any, heard: Heard, **options: Any) -> AsyncIterator[None]:
    running = asyncio.ensure_future(Listener(engine, CHANNEL, heard, **options).run())
    try:
        await heard.more_than(0)
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def notify(admin: Engine) -> None:
    with admin.begin() as connection:
        connection.execute(text(f"NOTIFY {CHANNEL}"))


def listeners(admin: Engine) -> list[int]:
    """Backends whose last statement is one of a listener's; nobody else is connected to the test's database."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND (query LIKE 'LISTEN%' OR query = 'SELECT 1')"
    )
    with admin.connect() as connection:
        return list(connection.execute(text(query)).scalars())


@pytest.mark.servers("postgresql")
async def test_a_notification_wakes_up_and_so_does_the_first_connect(
    any_engine: Any, admin: Engine, heard: Heard
) -> None:
    async with listening(any_engine, heard):
        for _ in range(3):
            before = heard.count
            notify(admin)
            await heard.more_than(before)


@pytest.mark.servers("postgresql")
async def test_asyncpg_and_psycopg_hear(async_engine: Any, admin: Engine, heard: Heard) -> None:
    async with listening(async_engine, heard):
        notify(admin)
        await heard.more_than(1)


@pytest.mark.servers("postgresql")
async def test_a_killed_listener_comes_back_polls_and_hears_again(
    any_engine: Any, admin: Engine, heard: Heard, kill: Callable[[int], None]
) -> None:
    async with listening(any_engine, heard):
        (number,) = await eventually_async(lambda: listeners(admin))
        kill(number)
        await heard.more_than(1)
        before = heard.count
        notify(admin)
        await heard.more_than(before)


@pytest.mark.servers("postgresql")
async def test_a_silent_network_is_found_out(proxied: Any, proxy: TcpProxy, admin: Engine, heard: Heard) -> None:
    async with listening(proxied, heard, silence=0.1, answer=1.0):
        proxy.set_mode("blackhole")
        notify(admin)  # lost
        proxy.set_mode("cut")
        proxy.set_mode("ok")
        await heard.more_than(1)
        before = heard.count
        notify(admin)
        await heard.more_than(before)


@pytest.mark.servers("postgresql")
async def test_the_listener_takes_nothing_from_the_pool_and_closes_its_connection(
    any_engine: Any, admin: Engine, heard: Heard
) -> None:
    pool: Any = (any_engine if isinstance(any_engine, Engine) else any_engine.sync_engine).pool
    async with listening(any_engine, heard):
        assert pool.checkedout() == 0
    await eventually_async(lambda: not listeners(admin))


@pytest.mark.servers("sqlite", "mysql", "mariadb")
async def test_a_driver_without_notifications_ends_the_listener_quietly(any_engine: Any, heard: Heard) -> None:
    await Listener(any_engine, CHANNEL, heard).run()
    assert heard.count == 0


@pytest.mark.parametrize("channel", ["", "1st", "a-b", 'a"; DROP TABLE task; --', "a" * 64, "é"])
def test_a_channel_that_cannot_be_quoted_is_refused(channel: str) -> None:
    with pytest.raises(InvalidSetting, match="channel"):
        checked_channel(channel)
