"""A draining worker ends when nothing is due, whoever else is at work on the table."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, update
from sqlalchemy.exc import ProgrammingError

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import Status
from sa_taskqueue.store import TaskStore, promotion
from sa_taskqueue.worker import Worker
from sa_taskqueue.worker.crew import Crew
from tests.support import eventually
from tests.worker.support import Database, drain, running


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_task_that_another_worker_promotes_just_now_is_waited_for(
    engine: Engine, db: Database, queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    @queue.task
    def work() -> None:
        """Nothing to do."""

    task_id = db.put(work.using(run_after=timedelta(hours=1)))
    looks: list[int] = []
    promote = TaskStore.promote

    def counted(store: TaskStore, connection: Connection, limit: int) -> int:
        looks.append(promote(store, connection, limit))
        return looks[-1]

    monkeypatch.setattr(TaskStore, "promote", counted)
    with db.engine.connect() as other:
        assert other.scalar(_lock_of_promotion(db, other))
        with db.engine.begin() as connection:
            clock = adapter_for(connection.dialect).ago(1.0)
            connection.execute(update(db.table).values(scheduled_at=clock))
        with running(Worker(queue, engine, drain=True)) as worker:
            eventually(lambda: len(looks) > 5)
            assert set(looks) == {0}
            other.invalidate()

    assert worker.counts.completed == 1
    assert db.row(task_id).status == Status.COMPLETED


def test_a_drain_that_cannot_see_whether_anything_is_due_looks_ever_more_rarely(
    engine: Engine, db: Database, queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    see = Crew._anything_due

    async def failing_at_first(crew: Crew) -> bool:
        looks.append(time.monotonic())
        if len(looks) < 7:
            raise ProgrammingError("SELECT", {}, Exception("no such function"))
        return await see(crew)

    monkeypatch.setattr(Crew, "_anything_due", failing_at_first)
    drain(Worker(queue, engine, drain=True))

    assert len(looks) == 7
    assert looks[6] - looks[0] > 1.0  # without longer pauses 0.3
    assert db.statuses() == {}


def _lock_of_promotion(db: Database, connection: Connection) -> Any:
    return adapter_for(connection.dialect).try_lock(promotion.lock_name(db.table))
