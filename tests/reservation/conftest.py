"""What the tests of strategies share: the fixtures of the worker's tests, and bare holders of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, Table

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import Reservation
from tests.models import Task
from tests.reservation.holder import Holder
from tests.reservation.models import RESERVED, Reserved
from tests.worker.conftest import db, worker_engine
from tests.worker.support import Database

__all__ = ["db", "worker_engine"]

MakeHolder = Callable[[Reservation], Holder]


@pytest.fixture
def reserved(db: Database) -> Table:
    """The table of reservations, empty."""
    engine = db.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        RESERVED.create(connection, checkfirst=True)
        connection.execute(RESERVED.delete())
    return RESERVED


@pytest.fixture
def queue(request: pytest.FixtureRequest, server: str) -> TaskQueue:
    """A task queue with a table of reservations, without handlers."""
    if server != "sqlite":
        request.getfixturevalue("reserved")
    return TaskQueue(Task, reservations=Reserved)


@pytest.fixture
def make_holder(engine: Engine, tasks: Table, reserved: Table) -> Iterator[MakeHolder]:
    """Makes what stands for a worker: a strategy with the connections that a worker gives it."""
    made: list[Holder] = []

    def make(reservation: Reservation, lease: float = 60.0) -> Holder:
        made.append(Holder(engine, tasks, reserved, reservation, lease=lease, by=f"holder {len(made)}"))
        return made[-1]

    yield make
    for holder in made:
        holder.close()
