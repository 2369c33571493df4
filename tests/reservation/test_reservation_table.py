"""ReservationTable: expiry, take-over, a table that is emptied, full or missing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, Table, func, inspect, select, text, update

from sa_taskqueue.exceptions import MissingTable, SchemaMissing
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import ReservationTable
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.models import Task
from tests.reservation.conftest import MakeHolder
from tests.support import eventually
from tests.worker.support import Database, drain

pytestmark = pytest.mark.servers("postgresql", "mysql", "mariadb")


@pytest.fixture
def ids(db: Database, queue: TaskQueue) -> list[UUID]:
    @queue.task
    def work(n: int) -> None: ...

    return db.put_many(work, 10)


def expire(engine: Engine, reserved: Table) -> None:
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(update(reserved).values(reserved_until=text("TIMESTAMP '2001-01-01 00:00:00'")))


def empty(engine: Engine, reserved: Table) -> None:
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(reserved.delete())


def count(engine: Engine, reserved: Table) -> int:
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(reserved)) or 0


def test_the_table_is_written_to_no_log(engine: Engine, reserved: Table) -> None:
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            persistence = connection.scalar(text("SELECT relpersistence FROM pg_class WHERE relname = 'reserved'"))
            assert persistence in ("u", b"u")
        else:
            options = inspect(connection).get_table_options(reserved.name)
            assert "MEMORY" in {str(value).upper() for value in options.values()}


def test_an_expired_reservation_is_taken_over_and_the_first_commit_wins(
    make_holder: MakeHolder, engine: Engine, reserved: Table, ids: list[UUID]
) -> None:
    holder, other = make_holder(ReservationTable()), make_holder(ReservationTable())
    claimed = holder.claim(10)
    assert other.claim(10) == []
    expire(engine, reserved)
    again = other.claim(10)
    assert {task.id for task in again} == {*ids}
    assert holder.renew(claimed).extended == set()
    assert other.complete(again[:6]) == {task.id for task in again[:6]}
    # The lost holder's late ends: refused where the other was first, accepted where it was not.
    assert holder.complete(claimed) == {task.id for task in again[6:]}
    assert other.complete(again[6:]) == set()


def test_a_holder_does_not_take_over_what_its_own_handlers_run(
    make_holder: MakeHolder, engine: Engine, reserved: Table, ids: list[UUID]
) -> None:
    holder = make_holder(ReservationTable())
    claimed = holder.claim(10)
    expire(engine, reserved)
    assert holder.claim(10) == []
    assert holder.renew(claimed).extended == {*ids}


def test_after_the_table_was_emptied_tasks_run_again_and_none_is_lost(
    make_holder: MakeHolder, engine: Engine, reserved: Table, db: Database, ids: list[UUID]
) -> None:
    holder, other = make_holder(ReservationTable()), make_holder(ReservationTable())
    claimed = holder.claim(10)
    empty(engine, reserved)
    again = other.claim(10)
    assert len(again) == 10
    assert holder.renew(claimed).extended == set()
    assert other.complete(again) == {*ids}
    assert holder.complete(claimed) == set()
    assert {(row.status, row.attempt) for row in db.rows(ids)} == {(Status.COMPLETED, 1)}


def test_reservations_go_with_their_tasks(
    make_holder: MakeHolder, engine: Engine, reserved: Table, ids: list[UUID]
) -> None:
    holder = make_holder(ReservationTable())
    claimed = holder.claim(10)
    assert count(engine, reserved) == 10
    holder.complete(claimed[:5])
    holder.release(claimed[5:])
    holder.reservation.end(holder.connection)
    assert count(engine, reserved) == 0


@pytest.mark.servers("postgresql")
def test_the_removal_is_part_of_the_finish(
    make_holder: MakeHolder, engine: Engine, reserved: Table, ids: list[UUID]
) -> None:
    holder = make_holder(ReservationTable())
    holder.complete(holder.claim(10))
    assert count(engine, reserved) == 0


def test_what_dead_workers_left_behind_is_swept(
    make_holder: MakeHolder, engine: Engine, reserved: Table, ids: list[UUID]
) -> None:
    make_holder(ReservationTable()).claim(10)
    expire(engine, reserved)
    sweeper = make_holder(ReservationTable(), lease=0.001)
    eventually(lambda: sweeper.claim(0) == [] and count(engine, reserved) == 0)


@pytest.mark.servers("mysql", "mariadb")
def test_a_full_table_stops_claiming_and_says_so(
    make_holder: MakeHolder, engine: Engine, reserved: Table, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("SET SESSION max_heap_table_size = 16384"))
        connection.execute(text("ALTER TABLE reserved ENGINE=MEMORY"))
    queue = TaskQueue(Task)

    @queue.task
    def work(n: int) -> None: ...

    db.put_many(work, 4000)
    try:
        holder = make_holder(ReservationTable())
        claimed = holder.claim(4000)
        assert 0 < len(claimed) < 4000
        assert "reserved is full" in caplog.text
        assert "max_heap_table_size" in caplog.text
        assert holder.claim(100) == []
        assert holder.complete(claimed) == {task.id for task in claimed}
    finally:
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(reserved.delete())
            connection.execute(text("ALTER TABLE reserved ENGINE=MEMORY"))


def test_without_a_mapped_table_the_worker_says_which_mixin_is_missing(engine: Engine, tasks: Table) -> None:
    with pytest.raises(MissingTable, match=r"ReservationMixin.*reservations="):
        drain(Worker(TaskQueue(Task), engine, reservation=ReservationTable()))


def test_a_table_that_the_database_lacks_is_named(
    worker_engine: Any, engine: Engine, reserved: Table, queue: TaskQueue
) -> None:
    with engine.begin() as connection:
        reserved.drop(connection)
    with pytest.raises(SchemaMissing, match="reserved"):
        drain(Worker(queue, worker_engine, reservation=ReservationTable()))
