"""Connections on which a rollback undoes nothing are refused at the first use, with the reason (rule 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue.exceptions import AutocommitEngine
from sa_taskqueue.session import TaskSession, enqueue
from tests.session.models import Customer, Job, send_receipt

Stored = Callable[..., list[Any]]


@pytest.fixture(params=["detected", "without detect_autocommit_setting"])
def detection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLAlchemy 2.0.40 has no `detect_autocommit_setting`: the driver is asked."""
    if request.param != "detected":
        from sqlalchemy.engine.default import DefaultDialect

        for dialect in [DefaultDialect, *_subclasses(DefaultDialect)]:
            if "detect_autocommit_setting" in vars(dialect):
                monkeypatch.delattr(dialect, "detect_autocommit_setting")


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    return [each for direct in cls.__subclasses__() for each in (direct, *_subclasses(direct))]


@pytest.mark.every_driver
@pytest.mark.parametrize("key", [None, "k"])
def test_an_autocommit_engine_is_refused(
    engine: Engine, url: URL, jobs: type[Job], stored: Stored, detection: None, key: str | None
) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with TaskSession(engine) as session:
        session.enqueue(send_receipt.using(unique_key=key), 1)
        with pytest.raises(AutocommitEngine, match="AUTOCOMMIT"):
            session.commit()
    with TaskSession(engine) as session, pytest.raises(AutocommitEngine):
        session.enqueue_many(send_receipt, [{"order_id": 1}])
    engine.dispose()
    assert stored() == []


@pytest.mark.every_driver
async def test_an_autocommit_async_engine_is_refused(
    async_url: URL, jobs: type[Job], stored: Stored, detection: None
) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    from sa_taskqueue.session import AsyncTaskSession

    engine = create_async_engine(async_url, isolation_level="AUTOCOMMIT")
    async with AsyncTaskSession(engine) as session:
        session.enqueue(send_receipt, 1)
        with pytest.raises(AutocommitEngine):
            await session.commit()
    await engine.dispose()
    assert stored() == []


@pytest.mark.every_driver
def test_a_transactional_engine_is_never_suspected(
    engine: Engine, url: URL, jobs: type[Job], stored: Stored, detection: None
) -> None:
    stock = create_engine(url)
    for each in (engine, stock):
        for isolation in (None, "SERIALIZABLE"):
            with Session(each) as session:
                session.connection(execution_options={"isolation_level": isolation} if isolation else None)
                enqueue(session, send_receipt, 1)
                session.commit()
    stock.dispose()
    assert len(stored()) == 4


def test_one_autocommit_connection_of_a_transactional_engine(
    factory: sessionmaker[TaskSession], stored: Stored
) -> None:
    with factory() as session:
        session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
        session.enqueue(send_receipt, 1)
        with pytest.raises(AutocommitEngine):
            session.flush()
    assert stored() == []


def test_a_session_without_tasks_may_use_autocommit(url: URL, jobs: type[Job]) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with TaskSession(engine) as session:
        session.add(Customer(name="Ada"))
        session.commit()
    engine.dispose()
