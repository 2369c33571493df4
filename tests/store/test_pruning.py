"""Old rows are deleted in batches, and nothing stands in the way."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, ForeignKey, Table, event, func, insert, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.models import QueueMixin
from sa_taskqueue.states import Status
from sa_taskqueue.store.inserts import insert_many
from sa_taskqueue.store.pruning import prune
from tests.store.new_tasks import new_task

DAY = dt.timedelta(days=1)


class Base(DeclarativeBase):
    pass


class PruneTask(QueueMixin, Base):
    __tablename__ = "prune_task"


class Receipt(Base):
    """Keeps its task from being deleted."""

    __tablename__ = "prune_receipt"
    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey(PruneTask.id, ondelete="RESTRICT"))


class Note(Base):
    """Goes with its task."""

    __tablename__ = "prune_note"
    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey(PruneTask.id, ondelete="CASCADE"))


@pytest.fixture
def table(engine: Engine) -> Iterator[Table]:
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda driver, _: driver.execute("PRAGMA foreign_keys = ON"))
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    yield Base.metadata.tables["prune_task"]
    Base.metadata.drop_all(engine)


def ended(engine: Engine, table: Table, count: int, age: dt.timedelta, status: Status = Status.COMPLETED) -> list[Any]:
    tasks = [new_task() for _ in range(count)]
    finished = dt.datetime.now(dt.UTC) - age
    with engine.begin() as connection:
        ids = insert_many(connection, table, tasks)
        values = {"status": status, "finished_at": finished}
        connection.execute(update(table).where(table.c.id.in_(ids)).values(values))
    return ids


def pruned(engine: Engine, table: Table, limit: int = 1000, status: Status = Status.COMPLETED) -> int:
    with engine.begin() as connection:
        return prune(connection, table, status, DAY, limit)


def left(engine: Engine, table: Table) -> set[uuid.UUID]:
    with engine.connect() as connection:
        return set(connection.scalars(select(table.c.id)))


def test_only_old_rows_of_the_status_go(engine: Engine, table: Table) -> None:
    ended(engine, table, 3, 2 * DAY)
    kept = ended(engine, table, 2, DAY / 2) + ended(engine, table, 2, 2 * DAY, Status.FAILED)
    with engine.begin() as connection:
        kept += insert_many(connection, table, [new_task(), new_task(delay=DAY)])
    assert pruned(engine, table) == 3
    assert left(engine, table) == set(kept)


def test_a_batch_is_bounded_and_takes_the_oldest_first(engine: Engine, table: Table) -> None:
    newer = ended(engine, table, 3, 2 * DAY)
    ended(engine, table, 3, 3 * DAY)
    assert pruned(engine, table, limit=4) == 4
    assert len(left(engine, table)) == 2
    assert left(engine, table) <= set(newer)
    assert pruned(engine, table, limit=4) == 2


@pytest.mark.parametrize("limit", [4, 1000])
def test_rows_that_a_foreign_key_protects_are_passed(engine: Engine, table: Table, limit: int) -> None:
    protected = ended(engine, table, 10, 4 * DAY)
    ended(engine, table, 10, 3 * DAY)
    with engine.begin() as connection:
        connection.execute(insert(Receipt), [{"task_id": task_id} for task_id in protected])
    while pruned(engine, table, limit) == limit:
        pass
    assert left(engine, table) == set(protected)


def test_a_foreign_key_that_no_model_knows_is_passed_too(engine: Engine, table: Table) -> None:
    ids = ended(engine, table, 20, 4 * DAY)
    with engine.begin() as connection:
        connection.execute(insert(Receipt), [{"task_id": ids[3]}, {"task_id": ids[16]}])
    alone = PruneTask.__table__.to_metadata(type(Base.metadata)())  # type: ignore[attr-defined]
    assert pruned(engine, alone) == 18
    assert left(engine, table) == {ids[3], ids[16]}


def test_rows_that_depend_on_the_task_go_with_it(engine: Engine, table: Table) -> None:
    [task_id] = ended(engine, table, 1, 2 * DAY)
    with engine.begin() as connection:
        connection.execute(insert(Note), [{"task_id": task_id}])
    assert pruned(engine, table) == 1
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(Note)) == 0


@pytest.mark.servers("postgresql", "mysql", "mariadb", "postgresql18")
def test_rows_that_another_transaction_holds_are_passed_without_waiting(engine: Engine, table: Table) -> None:
    ids = ended(engine, table, 5, 2 * DAY)
    committed = engine.execution_options(isolation_level="READ COMMITTED")
    with committed.begin() as holder:
        holder.execute(select(table.c.id).where(table.c.id == ids[0]).with_for_update())
        assert pruned(committed, table) == 4
    assert left(engine, table) == {ids[0]}
    assert pruned(committed, table) == 1
