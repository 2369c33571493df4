"""`on_duplicate="replace"` of a task whose handler runs under `RowLock`: refused after a while, not waited for."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import Engine, text

from sa_taskqueue import RowLock, TaskQueue, TaskSession, Worker
from sa_taskqueue.exceptions import TaskRunning
from sa_taskqueue.states import Status
from sa_taskqueue.store import unique
from tests.models import Order, Task
from tests.support import TIMEOUT
from tests.worker.support import Database, running

SETTING = {
    "postgresql": "SHOW lock_timeout",
    "mysql": "SELECT @@SESSION.innodb_lock_wait_timeout",
}


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(unique, "PATIENCE", 1)
    return 1


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_task_that_runs_is_not_replaced_and_the_transaction_goes_on(
    engine: Engine, worker_engine: Any, db: Database, patience: int
) -> None:
    queue, begun, end = TaskQueue(Task), threading.Event(), threading.Event()
    ran: list[int] = []

    @queue.task
    def work(n: int) -> None:
        ran.append(n)
        begun.set()
        assert end.wait(TIMEOUT)

    keyed = work.using(unique_key="k", on_duplicate="replace")
    task_id = db.put(keyed, n=1)
    with running(Worker(queue, worker_engine, reservation=RowLock(), max_tasks=1)):
        assert begun.wait(TIMEOUT)
        with TaskSession(engine) as session:
            before = session.execute(text(SETTING[_family(engine)])).scalar_one()
            session.add(Order(id=1))
            session.flush()
            with pytest.raises(TaskRunning, match="locked by another transaction"), session.begin_nested():
                session.enqueue(keyed, n=2)
            assert session.execute(text(SETTING[_family(engine)])).scalar_one() == before
            session.commit()
        end.set()
    with TaskSession(engine) as session:
        assert session.get(Order, 1) is not None
    assert (ran, db.row(task_id).status) == ([1], Status.COMPLETED)


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_task_that_waits_is_replaced_as_ever(engine: Engine, db: Database) -> None:
    queue = TaskQueue(Task)

    @queue.task
    def work(n: int) -> None: ...

    keyed = work.using(unique_key="k", on_duplicate="replace")
    task_id = db.put(keyed, n=1)
    with TaskSession(engine) as session, session.begin():
        session.enqueue(keyed, n=2)
    row = db.row(task_id)
    assert ("2" in row.body, row.status, row.epoch) == (True, Status.NEW, 1)


def _family(engine: Engine) -> str:
    return "postgresql" if engine.dialect.name == "postgresql" else "mysql"
