"""Runs workers in tests and reads what they have committed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, Row, Table, func, select, update

from sa_taskqueue.definitions import BoundTask, NewTask, TaskDefinition
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.models import Effect
from tests.support import TIMEOUT

AnyTask = TaskDefinition[..., Any] | BoundTask[..., Any]


class Database:
    """Puts tasks in and reads rows out, each in a transaction of its own."""

    def __init__(self, engine: Engine, table: Table) -> None:
        self.engine = engine
        self.table = table

    def put(self, task: AnyTask, *args: Any, **kwargs: Any) -> UUID:
        new = task.new(*args, **kwargs)
        self.put_new(task, [new])
        return new.id

    def put_many(self, task: AnyTask, number: int) -> list[UUID]:
        new = [task.new(n=n) for n in range(number)]
        self.put_new(task, new)
        return [one.id for one in new]

    def put_new(self, task: AnyTask, new: list[NewTask]) -> None:
        with TaskSession(self.engine) as session, session.begin():
            session.enqueue_many(task, new)

    def row(self, task_id: UUID) -> Row[Any]:
        with self.engine.connect() as connection:
            return connection.execute(select(self.table).where(self.table.c.id == task_id)).one()

    def rows(self, ids: list[UUID]) -> list[Row[Any]]:
        """The rows in the order of the ids."""
        with self.engine.connect() as connection:
            found = {row.id: row for row in connection.execute(select(self.table))}
        return [found[task_id] for task_id in ids]

    def statuses(self) -> dict[Status, int]:
        statement = select(self.table.c.status, func.count()).group_by(self.table.c.status)
        with self.engine.connect() as connection:
            return {Status(status): count for status, count in connection.execute(statement)}

    def effects(self) -> list[str]:
        with self.engine.connect() as connection:
            return sorted(connection.scalars(select(Effect.note)))

    def raise_epoch(self, task_id: UUID) -> None:
        """What happens when another worker takes the task over or an operator acts on it."""
        with self.engine.begin() as connection:
            own = self.table.c.id == task_id
            connection.execute(update(self.table).where(own).values(epoch=self.table.c.epoch + 1))


def drain(worker: Worker) -> Worker:
    """Run a draining worker to its end in a thread, whatever loop the test runs on."""
    with running(worker):
        pass
    return worker


@contextlib.contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    """The worker serves in a thread; at the end of the block it is waited for, after an exception it is stopped."""
    failed: list[BaseException] = []

    def serve() -> None:
        try:
            asyncio.run(worker.serve())
        except BaseException as error:  # handed to the test below
            failed.append(error)

    thread = threading.Thread(target=serve, name="worker under test")
    thread.start()
    try:
        yield worker
    except BaseException:
        worker.stop()
        worker.stop()
        thread.join(TIMEOUT)
        raise
    thread.join(TIMEOUT)
    if thread.is_alive():
        worker.stop()
        worker.stop()
        thread.join(TIMEOUT)
        raise AssertionError(f"the worker did not end; {worker.counts}")
    if failed:
        raise failed[0]
