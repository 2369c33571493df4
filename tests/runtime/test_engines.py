"""Pins the private names of SQLAlchemy by which an engine is copied without its pool."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from sa_taskqueue.runtime.engines import copy_without_pool
from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.runtime.side import SideLane


def one(connection: Connection) -> int:
    return int(connection.execute(text("SELECT 1")).scalar_one())


def test_a_copy_connects_without_the_pool_and_without_touching_it(engine: Engine) -> None:
    copy = copy_without_pool(engine)
    with copy.connect() as connection:
        assert one(connection) == 1
    assert isinstance(copy.pool, NullPool)
    assert (copy.dialect, copy.url) == (engine.dialect, engine.url)
    assert engine.pool.checkedin() == engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_copy_has_the_creator_the_options_and_the_events(url: URL) -> None:
    original = create_engine(url, execution_options={"logging_token": "mine"}, hide_parameters=True)
    created: list[str] = []
    make = original.pool._creator

    @event.listens_for(original, "do_connect")
    def connecting(*_: object) -> None:
        created.append("do_connect")

    @event.listens_for(original.pool, "connect")
    def connected(*_: object) -> None:
        created.append("connect")

    @event.listens_for(original, "before_cursor_execute")
    def executing(*_: object) -> None:
        created.append("execute")

    copy = copy_without_pool(original)
    assert copy.pool._creator is make
    assert copy.hide_parameters
    with copy.connect() as connection:
        created.clear()
        one(connection)
        assert connection.get_execution_options()["logging_token"] == "mine"
    assert created == ["execute"]
    created.clear()
    with copy.connect():
        assert created == ["do_connect", "connect"]


def test_listeners_on_all_engines_hear_a_copy_once(engine: Engine) -> None:
    heard: list[str] = []

    def executing(*arguments: Any) -> None:
        heard.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", executing)
    try:
        with copy_without_pool(engine).connect() as connection:
            heard.clear()
            one(connection)
    finally:
        event.remove(Engine, "before_cursor_execute", executing)
    assert heard.count("SELECT 1") == 1


@pytest.mark.every_driver
async def test_a_side_lane_works_in_its_thread_while_the_loop_is_blocked(any_engine: Any) -> None:
    """The portal's lane and the side lane use one engine from two loops at the same time."""
    portal = Portal(any_engine)
    await portal.start()
    lane = portal.lane("claims")
    assert await lane.run(one) == 1
    results: list[int] = []

    def work() -> None:
        side = SideLane(any_engine, timeout=30.0)
        try:
            results.extend(side.attempt(one) for _ in range(3))
        finally:
            side.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)  # blocks the loop, as a handler that forgets to await does
    assert results == [1, 1, 1]
    assert await lane.run(one) == 1
    await portal.aclose()


async def test_a_side_lane_leaves_repeating_to_its_caller(any_engine: Any) -> None:
    def work() -> int:
        side = SideLane(any_engine, timeout=30.0)
        try:
            with pytest.raises(DBAPIError):
                side.attempt(lambda connection: connection.execute(text("SELECT * FROM no_such_table")))
            return side.attempt(one)
        finally:
            side.close()

    assert await asyncio.to_thread(work) == 1
