"""A database that goes away: the worker keeps running, comes back by itself, and loses nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import URL, Engine, create_engine

from sa_taskqueue.context import TaskContext
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker, session_scope
from tests.models import Effect
from tests.support import eventually
from tests.tcp_proxy import TcpProxy
from tests.worker.support import Database, running

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")


@pytest.fixture
def proxy(url: URL) -> Iterator[TcpProxy]:
    assert url.host is not None
    with TcpProxy(url.host, url.port or 5432) as proxy:
        yield proxy


@pytest.fixture
def proxied(url: URL, proxy: TcpProxy) -> Iterator[Engine]:
    engine = create_engine(url.set(host="127.0.0.1", port=proxy.port))
    yield engine
    engine.dispose()


def test_a_stop_ends_a_start_that_a_silent_server_holds_up(
    proxied: Engine, proxy: TcpProxy, db: Database, queue: TaskQueue
) -> None:
    task_id = db.put(queue.task(name="nothing")(lambda: None))
    proxy.set_mode("blackhole")
    worker = Worker(queue, proxied)
    with running(worker):
        eventually(lambda: proxy.clients > 0)
        worker.stop()
    assert worker.counts.claimed == 0
    assert db.row(task_id).status == Status.NEW
    proxy.set_mode("cut")


def test_a_cut_while_handlers_run_loses_nothing(
    proxied: Engine, proxy: TcpProxy, db: Database, queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    @queue.task
    def work(n: int) -> None:
        started.release()
        assert go_on.wait(60)

    db.put_many(work, 20)
    worker = Worker(queue, proxied, queues={"default": 10})
    with running(worker):
        for _ in range(10):
            assert started.acquire(timeout=30)
        proxy.set_mode("cut")
        go_on.set()
        eventually(lambda: "lane finish" in caplog.text)
        assert db.statuses()[Status.RUNNING] >= 10
        later = db.put(work, n=99)
        proxy.set_mode("ok")
        eventually(lambda: db.statuses() == {Status.COMPLETED: 21})
        worker.stop()
    assert db.row(later).attempt == 1


def test_a_handlers_cut_transaction_is_run_again_with_one_effect(
    proxied: Engine, proxy: TcpProxy, db: Database, queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    cut = threading.Event()

    @queue.task
    def work(context: TaskContext) -> None:
        context.session.add(Effect(task_id=str(context.task.id), note="once"))
        context.session.flush()
        if not cut.is_set():
            cut.set()
            proxy.set_mode("cut")

    task_id = db.put(work)
    worker = Worker(queue, proxied)
    with running(worker):
        assert cut.wait(30)
        eventually(lambda: "lane finish" in caplog.text)
        proxy.set_mode("ok")
        eventually(lambda: db.row(task_id).status == Status.COMPLETED)
        worker.stop()
    assert db.effects() == ["once"]


def test_a_connection_that_broke_between_two_handlers_costs_no_attempt(
    proxied: Engine, proxy: TcpProxy, db: Database, queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_scope, "TRUSTED", 0.0)

    @queue.task
    def work(context: TaskContext) -> None:
        context.session.add(Effect(task_id=str(context.task.id)))

    first = db.put(work)
    worker = Worker(queue, proxied)
    with running(worker):
        eventually(lambda: db.row(first).status == Status.COMPLETED)
        proxy.set_mode("cut")
        proxy.set_mode("ok")
        second = db.put(work)
        eventually(lambda: db.row(second).status not in (Status.NEW, Status.RUNNING))
        worker.stop()
    assert (db.row(second).status, db.row(second).attempt) == (Status.COMPLETED, 1)
