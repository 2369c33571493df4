"""One wake-up after the outermost COMMIT, none otherwise (R01, R20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.runtime import wakeups
from sa_taskqueue.session import TaskSession
from sa_taskqueue.session.outermost import forget_after_owner, wake_after_owner
from tests.session.models import Job, send_receipt

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]

MODES = ["conditional_savepoint", "rollback_only", "control_fully", "create_savepoint"]


def test_the_wake_up_comes_when_the_row_can_be_seen(factory: Factory, engine: Engine, stored: Stored) -> None:
    seen: list[list[Any]] = []
    end = wakeups.subscribe(engine.url, Job.metadata.tables["session_job"], lambda _queue: seen.append(stored()))
    try:
        with factory.begin() as session:
            known = session.enqueue(send_receipt, 1).id
            session.flush()
    finally:
        end()
    assert seen == [[known]]


def test_many_tasks_in_many_flushes_wake_each_queue_once(factory: Factory, woken: list[str]) -> None:
    with factory.begin() as session:
        for number in range(5):
            session.enqueue(send_receipt, number)
            session.enqueue(send_receipt.using(queue="reports"), number)
            session.flush()
    assert sorted(woken) == ["mail", "reports"]


def test_a_commit_without_tasks_wakes_nobody(factory: Factory, woken: list[str]) -> None:
    with factory() as session:
        session.connection()
        session.commit()
    assert woken == []


@pytest.mark.parametrize("commit", [True, False])
def test_savepoints_released_and_rolled_back(factory: Factory, stored: Stored, woken: list[str], commit: bool) -> None:
    with factory() as session:
        with session.begin_nested():
            kept = session.enqueue(send_receipt.using(queue="kept"), 1).id
        with session.begin_nested() as savepoint:
            session.enqueue(send_receipt.using(queue="lost"), 2)
            session.flush()
            savepoint.rollback()
        with session.begin_nested(), session.begin_nested() as inner:
            session.enqueue(send_receipt.using(queue="lost"), 3)
            inner.rollback()
        assert woken == []
        if commit:
            session.commit()
        else:
            session.rollback()
    assert stored() == ([kept] if commit else [])
    assert woken == (["kept"] if commit else [])


def test_an_inner_savepoint_released_in_one_rolled_back(factory: Factory, stored: Stored, woken: list[str]) -> None:
    with factory() as session:
        outer = session.begin_nested()
        with session.begin_nested():
            session.enqueue(send_receipt, 1)
        outer.rollback()
        session.commit()
    assert stored() == []
    assert woken == []


def test_a_transaction_closed_without_commit_wakes_nobody(factory: Factory, woken: list[str]) -> None:
    with factory() as session:
        session.enqueue(send_receipt, 1)
        session.flush()
    assert woken == []


def test_a_commit_that_fails_wakes_nobody(factory: Factory, engine: Engine, stored: Stored, woken: list[str]) -> None:
    def refuse(_connection: object) -> None:
        raise RuntimeError("no commit")

    with factory() as session:
        session.enqueue(send_receipt, 1)
        session.flush()
        event.listen(engine, "commit", refuse)
        with pytest.raises(RuntimeError):
            session.commit()
        event.remove(engine, "commit", refuse)
        session.rollback()
    assert stored() == []
    assert woken == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("outer", ["commit", "rollback"])
def test_a_session_joined_to_its_callers_transaction_wakes_when_that_has_ended(
    engine: Engine, jobs: type[Job], stored: Stored, woken: list[str], mode: Any, outer: str
) -> None:
    with engine.connect() as connection:
        transaction = connection.begin()
        with TaskSession(connection, join_transaction_mode=mode) as session:
            known = session.enqueue(send_receipt, 1).id
            session.commit()
        if mode == "control_fully":
            assert woken == ["mail"]
            assert stored() == [known]
            return
        assert woken == []
        getattr(transaction, outer)()
        if outer == "commit":
            wake_after_owner(connection)
        else:
            forget_after_owner(connection)
        assert woken == (["mail"] if outer == "commit" else [])
        wake_after_owner(connection)
        assert len(woken) == (outer == "commit")
    assert stored() == ([known] if outer == "commit" else [])


@pytest.mark.parametrize("mode", MODES)
def test_a_joined_session_that_rolls_back_stores_and_wakes_nothing(
    engine: Engine, jobs: type[Job], stored: Stored, woken: list[str], mode: Any
) -> None:
    with engine.connect() as connection, connection.begin() as transaction:
        with TaskSession(connection, join_transaction_mode=mode) as session:
            session.enqueue(send_receipt, 1)
            session.flush()
            session.rollback()
        wake_after_owner(connection)
        if transaction.is_active:
            transaction.commit()
    assert stored() == []
    assert woken == []


def test_a_session_in_a_test_fixtures_savepoint(
    engine: Engine, jobs: type[Job], stored: Stored, woken: list[str]
) -> None:
    """The recipe of many test suites: commits inside, one rollback outside."""
    with engine.connect() as connection:
        transaction = connection.begin()
        with TaskSession(connection, join_transaction_mode="create_savepoint") as session:
            for number in range(3):
                session.enqueue(send_receipt, number)
                session.commit()
        transaction.rollback()
    assert stored() == []
    assert woken == []


@pytest.mark.servers("mysql", "mariadb")
def test_a_two_phase_transaction_wakes_after_its_second_phase(
    factory: Factory, stored: Stored, woken: list[str]
) -> None:
    factory.configure(twophase=True)
    with factory() as session:
        known = session.enqueue(send_receipt, 1).id
        session.prepare()
        assert woken == []
        session.commit()
    assert stored() == [known]
    assert woken == ["mail"]


@pytest.mark.parametrize("commit", [True, False])
async def test_async_savepoints(async_factory: Any, stored: Stored, woken: list[str], commit: bool) -> None:
    async with async_factory() as session:
        async with session.begin_nested():
            kept = session.enqueue(send_receipt.using(queue="kept"), 1).id
        savepoint = await session.begin_nested()
        session.enqueue(send_receipt.using(queue="lost"), 2)
        await session.flush()
        await savepoint.rollback()
        assert woken == []
        await (session.commit() if commit else session.rollback())
    assert stored() == ([kept] if commit else [])
    assert woken == (["kept"] if commit else [])


@pytest.mark.parametrize("mode", MODES)
async def test_async_sessions_joined_to_their_callers_transaction(
    async_engine: Any, jobs: type[Job], stored: Stored, woken: list[str], mode: str
) -> None:
    from sa_taskqueue.session import AsyncTaskSession

    async with async_engine.connect() as connection:
        transaction = await connection.begin()
        async with AsyncTaskSession(connection, join_transaction_mode=mode) as session:
            known = session.enqueue(send_receipt, 1).id
            await session.commit()
        if mode != "control_fully":
            assert woken == []
            await transaction.commit()
            wake_after_owner(connection.sync_connection)
    assert stored() == [known]
    assert woken == ["mail"]
