"""`enqueue_many`: as transactional as the rest (rule 1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.exceptions import DuplicateTask, InvalidArguments, TransactionEnded
from sa_taskqueue.session import TaskSession, enqueue_many
from sa_taskqueue.states import Status
from tests.session.models import Customer, refresh, send_receipt

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]

FEW = [{"order_id": number} for number in range(5)]
MANY = [{"order_id": number} for number in range(1500)]


@pytest.mark.every_driver
@pytest.mark.parametrize("rows", [FEW, MANY], ids=["few", "many"])
def test_ids_come_back_in_order_and_all_is_stored_at_commit(
    factory: Factory, stored: Stored, woken: list[str], rows: list[dict[str, int]]
) -> None:
    with factory() as session:
        session.enqueue_many(send_receipt, rows)
        session.rollback()
        ids = session.enqueue_many(send_receipt, rows)
        assert stored() == []
        session.commit()
    assert stored() == ids == sorted(ids)
    assert set(stored("status")) == {Status.NEW}
    assert woken == ["mail"]


@pytest.mark.every_driver
@pytest.mark.parametrize("rows", [FEW, MANY], ids=["few", "many"])
async def test_on_an_async_session_it_is_awaited(
    async_factory: Any, stored: Stored, woken: list[str], rows: list[dict[str, int]]
) -> None:
    """On asyncpg a COPY as the first statement would escape the transaction."""
    async with async_factory() as session:
        await session.enqueue_many(send_receipt, rows)
        await session.rollback()
        assert stored() == []
        ids = await session.enqueue_many(send_receipt, rows)
        savepoint = await session.begin_nested()
        await session.enqueue_many(send_receipt, rows)
        await savepoint.rollback()
        await session.commit()
    assert stored() == ids
    assert woken == ["mail"]


@pytest.mark.every_driver
@pytest.mark.parametrize("rows", [FEW, MANY], ids=["few", "many"])
def test_a_savepoint_rolled_back_takes_them_with_it(
    factory: Factory, stored: Stored, woken: list[str], rows: list[dict[str, int]]
) -> None:
    with factory() as session:
        with session.begin_nested() as savepoint:
            session.enqueue_many(send_receipt.using(queue="lost"), rows)
            savepoint.rollback()
        with session.begin_nested():
            ids = session.enqueue_many(send_receipt, rows)
        session.commit()
    assert stored() == ids
    assert woken == ["mail"]


def test_parents_are_flushed_first(factory: Factory, count: Callable[[type[Any]], int]) -> None:
    with factory.begin() as session:
        session.add(Customer(name="Ada"))
        session.enqueue_many(send_receipt, FEW)
        assert not session.new
    assert count(Customer) == 1


def test_all_arguments_are_checked_before_the_first_statement(factory: Factory, engine: Engine, stored: Stored) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with factory() as session:
        with pytest.raises(InvalidArguments):
            session.enqueue_many(send_receipt, [*FEW, {"nope": 1}])
        assert statements == []
        assert session.enqueue_many(send_receipt, []) == []
    assert stored() == []


def test_options_and_made_tasks(factory: Factory, stored: Stored) -> None:
    later = send_receipt.using(run_after=dt.timedelta(hours=1))
    with factory.begin() as session:
        session.enqueue_many(later, [*FEW, refresh.new("cache")])
    assert sorted(stored("status")) == [Status.NEW, *[Status.SCHEDULED] * 5]
    assert stored("queue").count("default") == 1


def test_keyed_tasks_among_them(factory: Factory, stored: Stored, woken: list[str]) -> None:
    keyed = [send_receipt.using(unique_key=str(number % 10)).new(number) for number in range(100)]
    with factory.begin() as session:
        session.add(Customer(name="Ada"))
        ids = session.enqueue_many(send_receipt, keyed)
    assert len(set(ids)) == 10
    assert set(stored()) == set(ids)
    with factory() as session, pytest.raises(DuplicateTask):
        session.enqueue_many(send_receipt, [send_receipt.using(unique_key="1", on_duplicate="raise").new(1)])
    assert woken == ["mail"]


def test_in_after_commit_it_is_refused(factory: Factory) -> None:
    with factory() as session:
        refused: list[bool] = []

        @event.listens_for(session, "after_commit")
        def listener(session: Any) -> None:
            with pytest.raises(TransactionEnded):
                enqueue_many(session, send_receipt, FEW)
            refused.append(True)

        session.add(Customer(name="Ada"))
        session.commit()
        assert refused == [True]


def test_an_item_that_is_no_mapping_is_refused(factory: Factory) -> None:
    with factory() as session, pytest.raises(InvalidArguments, match="an item is of the type int"):
        session.enqueue_many(send_receipt, [1, 2])  # type: ignore[list-item]
