"""Lanes over a network that fails: a TCP proxy stands between driver and server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.runtime.lane import Lane
from sa_taskqueue.runtime.portal import Portal
from tests.runtime.conftest import add_note
from tests.support import eventually_async
from tests.tcp_proxy import TcpProxy

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")

Notes = Callable[[], list[int]]


@pytest.fixture
async def lane(proxied: Any) -> AsyncIterator[Lane]:
    """A lane through the proxy, connected, that gives up an operation after half a second."""
    portal = Portal(proxied)
    await portal.start()
    lane = portal.lane("claims", timeout=0.5)
    await lane.run(id)
    yield lane
    await portal.aclose()


async def test_a_cut_connection_is_made_again(lane: Lane, proxy: TcpProxy, notes: Notes) -> None:
    proxy.set_mode("cut")
    running = asyncio.ensure_future(lane.run(add_note, 1))
    await asyncio.wait([running], timeout=0.2)
    assert not running.done()
    proxy.set_mode("ok")
    assert await running == 1
    assert notes() == [1]


@pytest.mark.every_driver
async def test_a_server_that_never_answers_is_left_after_the_timeout(lane: Lane, proxy: TcpProxy, notes: Notes) -> None:
    proxy.set_mode("blackhole")
    running = asyncio.ensure_future(lane.run(add_note, 1))
    await asyncio.wait([running], timeout=0.2)
    proxy.set_mode("ok")  # what is on its way is lost all the same: only a new connection helps
    assert await running == 1
    assert notes() == [1]


async def test_a_lane_waits_as_long_as_the_server_is_silent(lane: Lane, proxy: TcpProxy, notes: Notes) -> None:
    proxy.set_mode("blackhole")
    running = asyncio.ensure_future(lane.run(add_note, 1))
    await asyncio.wait([running], timeout=1.2)  # past the first timeout, into a connect that is not answered either
    assert not running.done()
    proxy.set_mode("ok")
    assert await running == 1
    assert notes() == [1]


@pytest.mark.every_driver
async def test_a_commit_without_an_answer_is_unknown_and_what_it_stored_can_be_looked_up(
    lane: Lane, proxied: Any, proxy: TcpProxy, notes: Notes
) -> None:
    event.listen(sync(proxied), "commit", lambda _: proxy.set_mode("drop_replies"))
    with pytest.raises(CommitUnknown):
        await lane.run(add_note, 1)
    await eventually_async(lambda: notes() == [1])


async def test_a_repeatable_operation_is_repeated_after_a_commit_without_an_answer(
    lane: Lane, proxied: Any, proxy: TcpProxy, notes: Notes
) -> None:
    calls: list[int] = []

    def operation(connection: Connection) -> None:
        calls.append(1)
        add_note(connection, len(calls))

    event.listen(sync(proxied), "commit", lambda _: proxy.set_mode("drop_replies"), once=True)
    running = asyncio.ensure_future(lane.run_repeatable(operation))
    # The server has committed before its answer reaches the proxy, which must not let it pass.
    await eventually_async(lambda: notes() == [1] and proxy.swallowed.total() > 0)
    proxy.set_mode("ok")
    await running
    assert len(notes()) == 2


def sync(engine: Any) -> Engine:
    return engine if isinstance(engine, Engine) else engine.sync_engine
