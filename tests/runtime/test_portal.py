from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Engine, MetaData, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool, StaticPool

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.exceptions import (
    AutocommitEngine,
    DatabaseBusy,
    InMemoryDatabase,
    InvalidSetting,
    ServerUnreachable,
)
from sa_taskqueue.runtime import checks
from sa_taskqueue.runtime import portal as portal_module
from sa_taskqueue.runtime.checks import UNLIMITED, pool_capacity
from sa_taskqueue.runtime.portal import Portal
from sa_taskqueue.session import sqlite
from sa_taskqueue.session.sqlite import sqlite_engine


def one(connection: Connection) -> int:
    return int(connection.execute(text("SELECT 1")).scalar_one())


async def started(engine: Any, **options: Any) -> Portal:
    portal = Portal(engine)
    await portal.start(**options)
    return portal


@pytest.mark.every_driver
async def test_the_adapter_is_known_after_the_start(any_engine: Any, server: str) -> None:
    portal = Portal(any_engine)
    with pytest.raises(RuntimeError, match="start"):
        _ = portal.adapter
    await portal.start()
    assert portal.adapter.name == server.removesuffix("18")
    await portal.aclose()


async def test_the_start_leaves_no_connection_behind(any_engine: Any) -> None:
    portal = await started(any_engine)
    assert portal.sync_engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    await portal.aclose()


@pytest.mark.every_driver
async def test_an_autocommit_engine_is_refused(any_engine: Any) -> None:
    autocommit = any_engine.execution_options(isolation_level="AUTOCOMMIT")
    with pytest.raises(AutocommitEngine):
        await started(autocommit)


@pytest.mark.every_driver
async def test_an_engine_made_with_autocommit_is_refused(url: URL) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with pytest.raises(AutocommitEngine):
        await started(engine)


@pytest.mark.servers("sqlite")
async def test_sqlite_without_begin_is_refused_and_with_stock_settings_is_not(url: URL) -> None:
    bare = create_engine(url, connect_args={"isolation_level": None}, poolclass=NullPool)
    with pytest.raises(AutocommitEngine):
        await started(bare)
    stock = create_engine(url, poolclass=NullPool)
    await (await started(stock)).aclose()


@pytest.mark.parametrize("memory", ["sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"])
async def test_sqlite_in_memory_is_refused(memory: str) -> None:
    engine = create_engine(memory, poolclass=NullPool)
    with pytest.raises(InMemoryDatabase, match="Use a file"):
        await started(engine)


async def test_sqlite_in_memory_is_refused_before_its_pool_is() -> None:
    with pytest.raises(InMemoryDatabase, match="Use a file"):
        await Portal(create_engine("sqlite://")).start(connections=4)


@pytest.mark.every_driver
@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_unreachable_server_is_a_clear_error_without_the_password(url: URL, async_url: URL, kind: str) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nowhere = {"host": "127.0.0.1", "port": port, "password": "secret"}  # nothing listens there any more
    engine = create_engine(url.set(**nowhere)) if kind == "sync" else create_async_engine(async_url.set(**nowhere))
    with pytest.raises(ServerUnreachable, match="Check host, port") as caught:
        await started(engine)
    assert "secret" not in str(caught.value)
    assert str(port) in str(caught.value)


@pytest.mark.servers("sqlite")
@pytest.mark.parametrize("first", ["SQLite gives up", "the start gives up"])
async def test_a_file_that_another_transaction_has_locked_is_busy_not_unreachable(
    first: str, url: URL, tables: MetaData, monkeypatch: pytest.MonkeyPatch
) -> None:
    if first == "SQLite gives up":
        monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 0.1)
    else:
        monkeypatch.setattr(portal_module, "OPERATION_TIMEOUT", 0.1)
    other = sqlite_engine(url)
    engine = sqlite_engine(url)
    with other.begin(), pytest.raises(DatabaseBusy):
        await started(engine)
    engine.dispose()
    other.dispose()


@pytest.mark.servers("postgresql", "mysql", "mariadb")
async def test_a_database_that_does_not_exist_is_a_clear_error(url: URL) -> None:
    engine = create_engine(url.set(database="no_such_database"), poolclass=NullPool)
    with pytest.raises(ServerUnreachable, match="no_such_database"):
        await started(engine)


async def test_a_pool_smaller_than_needed_is_refused_at_the_start(url: URL) -> None:
    engine = create_engine(url, pool_size=2, max_overflow=1)
    with pytest.raises(InvalidSetting, match="at least 4"):
        await started(engine, connections=4)
    await (await started(engine, connections=3)).aclose()
    engine.dispose()


async def test_a_pool_that_others_have_emptied_is_named_instead_of_hanging(url: URL) -> None:
    engine = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    portal = await started(engine)
    with engine.connect():
        with pytest.raises(InvalidSetting, match="claims") as caught:
            await portal.lane("claims").run(one)
        assert isinstance(caught.value.__cause__, PoolTimeout)
    await portal.aclose()
    engine.dispose()


def test_the_capacity_of_each_pool(url: URL) -> None:
    def capacity(**options: Any) -> int:
        return pool_capacity(create_engine(url, **options).pool)

    assert capacity(pool_size=3, max_overflow=4) == 7
    assert capacity(pool_size=3, max_overflow=-1) == UNLIMITED
    assert capacity(pool_size=0) == UNLIMITED
    assert capacity(poolclass=NullPool) == UNLIMITED
    assert capacity(poolclass=StaticPool) == 1


async def test_a_portal_of_the_parent_process_is_refused_in_a_forked_child(engine: Engine) -> None:
    portal = await started(engine)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            portal.lane("claims")
        except InvalidSetting:
            code = 0
        finally:
            os._exit(code)
    assert await asyncio.to_thread(exit_code, child) == 0
    assert await portal.lane("claims").run(one) == 1
    await portal.aclose()


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


MOUNTS = """\
/dev/vda1 / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/export /srv/shared\\040files nfs4 rw 0 0
/dev/vdb /srv/shared\\040files/local xfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "system"),
    [
        ("/tasks.db", "ext4"),
        ("/tmp/tasks.db", "tmpfs"),
        ("/tmpfiles/tasks.db", "ext4"),
        ("/srv/shared files/tasks.db", "nfs4"),
        ("/srv/shared files/local/tasks.db", "xfs"),
    ],
)
def test_the_file_system_of_a_file_is_that_of_the_nearest_mount(path: str, system: str) -> None:
    assert checks.file_system_of(path, MOUNTS) == system


@pytest.mark.servers("sqlite")
async def test_a_file_on_a_network_file_system_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_mounts", lambda: "server:/export / nfs4 rw 0 0")
    with pytest.raises(InvalidSetting, match="on nfs4, but must be on a local disk"):
        await started(engine)


async def test_a_connection_that_breaks_while_the_lanes_are_opened_is_made_again(
    any_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal = await started(any_engine)
    lane = portal.lane("claim")
    failures = [OperationalError("SET lock_timeout", {}, Exception("server closed the connection"))]
    settings = portal_module.apply_worker_settings

    def failing_once(connection: Connection, adapter: Adapter) -> None:
        if failures:
            raise failures.pop()
        settings(connection, adapter)

    monkeypatch.setattr(portal_module, "apply_worker_settings", failing_once)
    await portal.open_lanes()

    assert await lane.run(one) == 1
    await portal.aclose()
