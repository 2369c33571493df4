"""What a test of the suite has at hand: a queue, workers and holders with the strategy, a look at what is stored."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row, select, update

from sa_taskqueue.control import Control
from sa_taskqueue.queue import BoundTask, TaskDefinition, TaskQueue
from sa_taskqueue.reservation import Lease, Reservation
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.store.new_rows import database_now
from sa_taskqueue.testing.database import Database
from sa_taskqueue.testing.holder import Holder
from sa_taskqueue.testing.models import TASKS, SuiteEffect, SuiteReserved, SuiteTask
from sa_taskqueue.testing.waiting import eventually
from sa_taskqueue.worker import Worker

AnyTask = TaskDefinition[..., Any] | BoundTask[..., Any]


class Strategy(NamedTuple):
    """A reservation strategy under test: its name, and what makes one for each worker."""

    name: str
    make: Callable[[], Reservation]

    def __str__(self) -> str:
        return self.name


class Trial:
    """One test's queue and database; each call is a transaction of its own."""

    def __init__(self, database: Database, strategy: Strategy | None = None) -> None:
        self.database = database
        self.strategy = strategy or Strategy("lease", Lease)
        reserved = SuiteReserved if "reservation-table" in database.adapter.reservations else None
        self.queue = TaskQueue(SuiteTask, reservations=reserved)
        self._holders: list[Holder] = []
        self._stopped: list[Worker] = []

    def task(self) -> TaskDefinition[[int], None]:
        """A task named `work`, with an argument `n`, that does nothing."""

        @self.queue.task
        def work(n: int) -> None:  # noqa: ARG001  stored, and that is all
            return

        return work

    # Putting in

    def put(self, task: AnyTask, *args: Any, **kwargs: Any) -> UUID:
        """Store one task."""
        new = task.new(*args, **kwargs)
        self.session(lambda session: session.enqueue_many(task, [new]))
        return new.id

    def put_many(self, task: AnyTask, number: int) -> list[UUID]:
        """Store tasks with the argument `n` from 0 on."""
        new = [task.new(n=n) for n in range(number)]
        self.session(lambda session: session.enqueue_many(task, new))
        return [one.id for one in new]

    def session(self, work: Callable[[TaskSession], Any]) -> Any:
        """Run with a session, and commit."""
        return self.database.session(work)

    def write(self, task: UUID, **values: Any) -> None:
        """Change a row behind everybody's back."""
        change = update(TASKS).where(TASKS.c.id == task).values(**values)
        self.database.call(lambda connection: connection.execute(change))

    def raise_epoch(self, task: UUID) -> None:
        """What happens to a row when another takes it over, or an operator acts on it."""
        self.write(task, epoch=TASKS.c.epoch + 1)

    # Running

    def holder(self, *, lease: float = 60.0, by: str = "a") -> Holder:
        """Holds tasks by the strategy, one step at a time; closed at the end of the test."""
        self._holders.append(Holder(self.database, self.strategy.make(), lease=lease, by=by))
        return self._holders[-1]

    def worker(self, **settings: Any) -> Worker:
        """A worker with the strategy."""
        return Worker(self.queue, self.database.engine, reservation=self.strategy.make(), **settings)

    def drain(self, **settings: Any) -> Worker:
        """A worker that has run until nothing was due."""
        worker = self.worker(**{"queues": {"default": 4}, "drain": True, **settings})
        self.database.loop.run(worker.serve())
        return worker

    @contextlib.contextmanager
    def running(self, **settings: Any) -> Iterator[Worker]:
        """A worker that serves during the block, and is then stopped and waited for."""
        worker = self.worker(**{"queues": {"default": 4}, **settings})
        serving = self.database.loop.start(worker.serve())
        try:
            yield worker
        finally:
            self.stop(worker)
            serving.result()

    def stop(self, worker: Worker) -> None:
        """Stop the worker, once: a second time would end its grace time. When this returns it knows."""
        if worker not in self._stopped:
            self._stopped.append(worker)
            worker.stop()
            self.database.loop.run(_turns())

    def operate(self, act: Callable[[Control], Any]) -> Any:
        """What an operator does with the queue."""

        async def operate() -> Any:
            async with Control(self.queue, self.database.engine) as control:
                return await act(control)

        return self.database.loop.run(operate())

    # Looking

    def row(self, task: UUID) -> Row[Any]:
        """The row of the task."""
        return self.database.call(lambda connection: connection.execute(select(TASKS).where(TASKS.c.id == task)).one())

    def rows(self, ids: Sequence[UUID] | None = None) -> list[Row[Any]]:
        """The rows in the order of the ids; all of them without."""
        found = self.database.call(lambda connection: connection.execute(select(TASKS)).all())
        if ids is None:
            return list(found)
        by_id = {row.id: row for row in found}
        return [by_id[task] for task in ids]

    def statuses(self) -> dict[Status, int]:
        """How many tasks there are of each status."""
        return dict(Counter(row.status for row in self.rows()))

    def error(self, task: UUID) -> dict[str, Any]:
        """The error in the row of the task."""
        error: dict[str, Any] = json.loads(self.row(task).error)
        return error

    def effects(self) -> list[str]:
        """The notes of all effects that are committed."""
        notes = select(SuiteEffect.note)
        return sorted(self.database.call(lambda connection: connection.execute(notes).scalars().all()))

    def now(self) -> Any:
        """The database's clock."""
        return self.database.call(database_now)

    def eventually(self, task: UUID, status: Status) -> None:
        """Wait until the task has the status."""
        eventually(lambda: self.row(task).status == status, message=f"the task did not become {status}")

    async def aside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call one of these methods from an async handler, whose loop they need."""
        return await asyncio.to_thread(function, *args)

    def close(self) -> None:
        """Close what the test has left open."""
        for holder in self._holders:
            holder.close()


async def _turns() -> None:
    """More turns of the loop than it takes until all parts of a worker have seen its stop."""
    for _ in range(100):
        await asyncio.sleep(0)
