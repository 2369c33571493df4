"""The renewal on real databases, beside a blocked loop, killed connections and a network that swallows everything."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import URL, Engine, Row, create_engine, select, text
from sqlalchemy.pool import NullPool

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.runtime.engines import copy_without_pool
from sa_taskqueue.runtime.margins import safety_margin
from sa_taskqueue.runtime.side import SideLane
from sa_taskqueue.store import TaskStore
from sa_taskqueue.worker.held import HeldTask, HeldTasks
from sa_taskqueue.worker.renewal import Renewer
from tests.support import eventually
from tests.tcp_proxy import TcpProxy
from tests.worker.support import Database

DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}


class Holder:
    """One claimed task and a renewer for it over the engine."""

    def __init__(self, db: Database, queue: TaskQueue, engine: Any, *, lease: float) -> None:
        @queue.task
        def work(n: int) -> None:
            """Never run here."""

        self.db = db
        self.lost: list[HeldTask] = []
        self.held = HeldTasks()
        self.id: UUID = db.put(work, n=1)
        with db.engine.begin() as connection:
            self.store = TaskStore(db.table, adapter_for(connection.dialect))
            self.store.adapter.begin(connection)
            before = time.monotonic()
            (claimed,) = self.store.claim(connection, "default", 10, lease=lease, by="test")
        self.held.add(claimed, before + lease - safety_margin(lease), lease)
        self.renewer = Renewer(
            self.held, self.store, lambda: SideLane(engine, timeout=1.0), lease=lease, on_lost=self.lost.append
        )
        self.renewer.start()

    def row(self) -> Row[Any]:
        return self.db.row(self.id)

    def reserved_later_than(self, moment: object) -> bool:
        return bool(self.row().reserved_until > moment)


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    """What the test holds; its threads are ended."""
    holders: list[Holder] = []
    yield holders
    for holder in holders:
        holder.renewer.stop(30)


@pytest.mark.every_driver
async def test_leases_are_renewed_while_the_event_loop_is_blocked(
    db: Database, queue: TaskQueue, worker_engine: Any, holders: list[Holder]
) -> None:
    holders.append(holder := Holder(db, queue, worker_engine, lease=60.0))
    moment = holder.row().reserved_until
    holder.renewer.renew_now()
    eventually(lambda: holder.reserved_later_than(moment))  # blocks the test's loop
    moment = holder.row().reserved_until
    holder.renewer.renew_now()
    eventually(lambda: holder.reserved_later_than(moment))
    assert holder.lost == []


@pytest.mark.servers("postgresql", "mysql", "mariadb")
async def test_a_killed_renewal_connection_is_made_again(
    db: Database, queue: TaskQueue, worker_engine: Any, holders: list[Holder], server: str
) -> None:
    holders.append(holder := Holder(db, queue, worker_engine, lease=60.0))
    moment = holder.row().reserved_until
    holder.renewer.renew_now()
    eventually(lambda: holder.reserved_later_than(moment))
    kill_all_others(db.engine, server)
    moment = holder.row().reserved_until
    holder.renewer.renew_now()
    eventually(lambda: holder.reserved_later_than(moment))
    assert holder.lost == []


async def test_a_row_taken_over_is_reported_lost(
    db: Database, queue: TaskQueue, worker_engine: Any, holders: list[Holder]
) -> None:
    holders.append(holder := Holder(db, queue, worker_engine, lease=60.0))
    db.raise_epoch(holder.id)
    holder.renewer.renew_now()
    eventually(lambda: [task.claimed.id for task in holder.lost] == [holder.id])


@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_black_hole_fences_before_the_lease_ends(
    db: Database, queue: TaskQueue, url: URL, async_url: URL, kind: str, holders: list[Holder]
) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    with TcpProxy(url.host or "127.0.0.1", url.port or DEFAULT_PORTS[url.get_backend_name()]) as proxy:
        through = (url if kind == "sync" else async_url).set(host="127.0.0.1", port=proxy.port)
        make: Any = create_engine if kind == "sync" else create_async_engine
        proxy.set_mode("blackhole")
        holders.append(holder := Holder(db, queue, make(through, poolclass=NullPool), lease=4.0))
        still_reserved: list[bool] = []

        def lost() -> bool:
            if holder.lost and not still_reserved:
                still_reserved.append(time.monotonic() < holder.lost[0].deadline + safety_margin(4.0))
            return bool(holder.lost)

        await asyncio.to_thread(eventually, lost)
        assert holder.row().status == "RUNNING"
        proxy.set_mode("cut")
        await asyncio.to_thread(holder.renewer.stop, 30)


@pytest.mark.servers("sqlite")
def test_on_sqlite_a_busy_renewal_waits_for_our_own_write_lock(
    db: Database, queue: TaskQueue, engine: Engine, holders: list[Holder]
) -> None:
    holders.append(holder := Holder(db, queue, engine, lease=2.0))
    with copy_without_pool(engine).begin() as writer:  # BEGIN IMMEDIATE
        writer.execute(text("UPDATE orders SET status = status"))
        moment = writer.execute(select(db.table.c.reserved_until)).scalar_one()
        holder.held.owns_write_lock = True
        never = threading.Event()
        never.wait(3.0)  # longer than the lease
        assert holder.lost == []
    holder.held.owns_write_lock = False
    eventually(lambda: holder.lost or holder.reserved_later_than(moment))


def kill_all_others(engine: Engine, server: str) -> None:
    """End every other connection to the test's database."""
    with engine.begin() as connection:
        if server.startswith("postgresql"):
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) {others}"))
            return
        # MySQL's information_schema fails (3854) on a statement with the bytes of an id in it, which it would show.
        others = {
            "mysql": "processlist_id AS id FROM performance_schema.threads WHERE processlist_db = database()",
            "mariadb": "id FROM information_schema.processlist WHERE db = database()",
        }[server]
        for number in connection.execute(text(f"SELECT {others} HAVING id <> connection_id()")).scalars().all():
            connection.execute(text(f"KILL {number}"))
