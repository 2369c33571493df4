"""Whatever ends a handler's transaction, and whenever: its effect is there once, or the task is still to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine, insert
from sqlalchemy.ext.asyncio import create_async_engine

from sa_taskqueue import TaskContext, TaskQueue, Worker
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.retry import fixed
from sa_taskqueue.runtime import faults
from sa_taskqueue.states import Status
from tests.models import Order
from tests.reservation.cuts import EFFECTS, Cuts, call_beside_loop, effect, possible
from tests.support import eventually
from tests.tcp_proxy import TcpProxy
from tests.worker.support import Database, running

pytestmark = [pytest.mark.servers("postgresql", "mysql", "mariadb"), pytest.mark.slow]

strategies = pytest.mark.parametrize("strategy", list(STRATEGIES))


@pytest.fixture
def proxy(database_url: URL) -> Iterator[TcpProxy]:
    assert database_url.host is not None
    with TcpProxy(database_url.host, database_url.port or 5432) as proxy:
        yield proxy


@pytest.fixture
def cuts(db: Database, proxy: TcpProxy) -> Iterator[Cuts]:
    with db.engine.begin() as connection:
        connection.execute(insert(Order), [{"id": 1, "status": "open"}, {"id": 2, "status": "open"}])
    cuts = Cuts(db, proxy)
    faults.install(cuts.at_point)
    yield cuts
    faults.install(None)
    cuts.join()


def do(connection: Connection, cuts: Cuts, cut: str, task: Any) -> None:
    connection.execute(insert(EFFECTS).values(effect(task, cut)))
    if cuts.first(cut):
        cuts.in_work(connection, cut, task)


@strategies
def test_effects_of_sync_handlers(
    url: URL, proxy: TcpProxy, cuts: Cuts, db: Database, queue: TaskQueue, strategy: str, capsys: Any
) -> None:
    @queue.task(retry=fixed(0, max_attempts=100))
    def work(context: TaskContext, cut: str) -> None:
        do(context.session.connection(), cuts, cut, context.task.id)

    check(create_engine(url.set(host="127.0.0.1", port=proxy.port)), cuts, db, queue, strategy, capsys)


@strategies
def test_effects_of_async_handlers(
    async_url: URL, proxy: TcpProxy, cuts: Cuts, db: Database, queue: TaskQueue, strategy: str, capsys: Any
) -> None:
    cuts.beside = call_beside_loop

    @queue.task(retry=fixed(0, max_attempts=100))
    async def work(context: TaskContext, cut: str) -> None:
        connection = await context.async_session.connection()
        await connection.run_sync(do, cuts, cut, context.task.id)

    check(create_async_engine(async_url.set(host="127.0.0.1", port=proxy.port)), cuts, db, queue, strategy, capsys)


def check(engine: Any, cuts: Cuts, db: Database, queue: TaskQueue, strategy: str, capsys: Any) -> None:
    expected = possible("postgresql" if db.engine.dialect.name == "postgresql" else "mysql", strategy)
    ids = [db.put(queue.handlers["work"], cut=cut) for cut in expected]
    settings: Any = {"queues": {"default": 1}, "lease": 4.0, "max_crashes": 1000, "poll_max": 0.2}
    worker = Worker(queue, engine, reservation=STRATEGIES[strategy](), **settings)
    with running(worker):
        eventually(lambda: {row.status for row in db.rows(ids)} == {Status.COMPLETED})
        worker.stop()
    if isinstance(engine, Engine):
        engine.dispose()
    with capsys.disabled():
        print(
            f"\n{strategy} on {db.engine.dialect.name}: " + "  ".join(f"{cut}={cuts.reached[cut]}" for cut in expected)
        )
    assert db.effects() == sorted(expected)
    assert {cut: cuts.reached[cut] for cut in expected} == dict.fromkeys(expected, 1)
