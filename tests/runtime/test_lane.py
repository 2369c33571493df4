from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from sa_taskqueue import telemetry
from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.runtime.lane import Lane
from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.runtime.retrying import MAX_RETRIES
from tests.runtime.conftest import add_note, session_number
from tests.support import eventually_async

Notes = Callable[[], list[int]]
servers_only = pytest.mark.servers("postgresql", "mysql", "mariadb")


@pytest.mark.every_driver
async def test_an_operation_is_committed_when_run_returns(portal: Portal, notes: Notes) -> None:
    lane = portal.lane("claims")
    assert await lane.run(add_note, 7) == 7
    assert notes() == [7]


@pytest.mark.every_driver
async def test_an_operation_that_raises_leaves_nothing(portal: Portal, notes: Notes) -> None:
    def spoilt(connection: Connection) -> None:
        add_note(connection, 1)
        raise ValueError("spoilt")

    lane = portal.lane("claims")
    with pytest.raises(ValueError, match="spoilt"):
        await lane.run(spoilt)
    assert await lane.run(add_note, 2) == 2
    assert notes() == [2]


@pytest.mark.every_driver
async def test_an_error_of_the_database_that_cannot_be_cured_is_raised_once(portal: Portal, notes: Notes) -> None:
    lane = portal.lane("claims")
    await lane.run(add_note, 1)
    calls: list[int] = []

    def again(connection: Connection) -> None:
        calls.append(1)
        add_note(connection, 1)

    with pytest.raises(IntegrityError):
        await lane.run(again)
    assert len(calls) == 1
    assert notes() == [1]


async def test_the_connection_is_held_and_its_settings_are_made_once(portal: Portal) -> None:
    statements: list[str] = []
    event.listen(portal.sync_engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    lane = portal.lane("claims")
    held = {await lane.run(id) for _ in range(3)}
    assert len(held) == 1
    for setting in portal.adapter.worker_settings():
        assert statements.count(setting) == 1


@pytest.mark.every_driver
@servers_only
async def test_a_lane_reads_committed_whatever_the_engine_says(portal: Portal, engine: Engine) -> None:
    level = await portal.lane("claims").run(lambda connection: connection.get_isolation_level())
    assert level == "READ COMMITTED"


@pytest.mark.servers("mysql", "mariadb")
async def test_the_lock_timeout_stays_with_the_worker_and_does_not_reach_the_pool(portal: Portal) -> None:
    read = text("SELECT @@innodb_lock_wait_timeout")
    lane = portal.lane("claims")
    assert await lane.run(lambda connection: connection.execute(read).scalar_one()) == 2
    number = await lane.run(session_number)
    await portal.aclose()
    other = portal.lane("after")
    assert await other.run(session_number) != number


@pytest.mark.every_driver
@servers_only
async def test_a_killed_connection_is_made_again(portal: Portal, notes: Notes, kill: Callable[[int], None]) -> None:
    lost: list[telemetry.Event] = []
    lane = portal.lane("claims")
    first = await lane.run(session_number)
    kill(first)
    unsubscribe = telemetry.subscribe(lost.append)
    assert await lane.run(add_note, 1) == 1
    unsubscribe()
    assert await lane.run(session_number) != first
    assert notes() == [1]
    assert lost == [telemetry.ConnectionLost("claims")]


@pytest.mark.every_driver
@servers_only
async def test_a_connection_killed_in_the_middle_of_an_operation_repeats_all_of_it(
    portal: Portal, notes: Notes, kill: Callable[[int], None]
) -> None:
    lane = portal.lane("claims")
    killed: list[int] = []

    def operation(connection: Connection) -> None:
        add_note(connection, 1)
        if not killed:
            killed.append(session_number(connection))
            kill(killed[0])
        add_note(connection, 2)

    await lane.run(operation)
    assert killed
    assert notes() == [1, 2]


@pytest.mark.every_driver
@servers_only
async def test_two_lanes_that_deadlock_both_come_through(portal: Portal, notes: Notes) -> None:
    setup = portal.lane("setup")
    await setup.run(add_note, 1)
    await setup.run(add_note, 2)
    met = {1: threading.Event(), 2: threading.Event()}
    calls: list[int] = []

    def cross(connection: Connection, own: int, other: int) -> None:
        calls.append(own)
        change = text("UPDATE note SET v = :n WHERE n = :n")
        connection.execute(change, {"n": own})
        met[own].set()
        if not portal.is_async:
            met[other].wait(30)
        else:
            from sqlalchemy.util import await_only

            await_only(reached(other))
        connection.execute(change, {"n": other})

    async def reached(n: int) -> None:
        await eventually_async(met[n].is_set)

    await asyncio.gather(portal.lane("one").run(cross, 1, 2), portal.lane("two").run(cross, 2, 1))
    assert len(calls) > 2


async def test_a_retryable_error_is_raised_after_five_repeats(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    from sa_taskqueue.adapters.errors import ErrorKind

    monkeypatch.setattr(portal.adapter, "classify", lambda error: ErrorKind.DEADLOCK)
    calls: list[int] = []

    def deadlocked(connection: Connection) -> None:
        calls.append(1)
        connection.execute(text("SELECT * FROM no_such_table"))

    with pytest.raises(DBAPIError):
        await portal.lane("claims").run(deadlocked)
    assert len(calls) == 1 + MAX_RETRIES


@pytest.mark.servers("sqlite")
async def test_a_busy_sqlite_is_waited_for(portal: Portal, notes: Notes, admin: Engine) -> None:
    holder = admin.connect()
    holder.execute(text("INSERT INTO note (n) VALUES (1)"))
    running = asyncio.ensure_future(portal.lane("claims").run(add_note, 2))
    await asyncio.sleep(0)
    holder.commit()
    holder.close()
    assert await running == 2
    assert notes() == [1, 2]


@pytest.mark.every_driver
@servers_only
async def test_operations_of_one_lane_never_overlap_and_those_of_two_do(portal: Portal) -> None:
    inside: list[str] = []
    overlaps: list[str] = []

    def operation(connection: Connection, name: str) -> None:
        if name in inside:
            overlaps.append(name)
        inside.append(name)
        connection.execute(text("SELECT 1"))
        inside.remove(name)

    one, two = portal.lane("one"), portal.lane("two")
    await asyncio.gather(*(lane.run(operation, lane.name) for lane in (one, two) for _ in range(20)))
    assert overlaps == []
    numbers = await asyncio.gather(one.run(session_number), two.run(session_number))
    assert numbers[0] != numbers[1]


@pytest.mark.every_driver
@servers_only
async def test_a_cancelled_operation_does_not_block_the_lane(portal: Portal, notes: Notes, admin: Engine) -> None:
    lane = portal.lane("claims")
    await lane.run(add_note, 1)
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()
    with admin.begin() as holder:
        holder.execute(text("UPDATE note SET v = 1 WHERE n = 1"))

        def blocked(connection: Connection) -> None:
            loop.call_soon_threadsafe(entered.set)
            connection.execute(text("UPDATE note SET v = 2 WHERE n = 1"))

        running = asyncio.ensure_future(lane.run(blocked))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await lane.run(add_note, 3) == 3
    assert notes() == [1, 3]


async def test_closing_is_final_and_may_be_repeated(portal: Portal) -> None:
    lane: Lane = portal.lane("claims")
    await lane.run(lambda connection: connection.execute(text("SELECT 1")))
    await lane.aclose()
    await lane.aclose()
    assert portal.sync_engine.pool.checkedout() == 0  # type: ignore[attr-defined]


@pytest.mark.servers("sqlite")
async def test_an_error_of_the_socket_at_commit_leaves_the_outcome_unknown(
    portal: Portal, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated as an error before COMMIT would be, the operation might run twice."""
    real = Connection.commit

    def commit(connection: Connection) -> None:
        real(connection)
        raise ConnectionResetError

    lane = portal.lane("claims")
    await lane.run(add_note, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Connection, "commit", commit)
        with pytest.raises(CommitUnknown):
            await lane.run(add_note, 2)
    assert notes() == [1, 2]
