"""NOTIFY inside the transaction, where the queue asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, Table, event
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.session import TaskSession
from sa_taskqueue.store.notify import channel_of
from tests.session.models import Job, queue, send_receipt

Factory = sessionmaker[TaskSession]


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "notify", True)


@pytest.fixture
def heard(plain_engine: Engine, jobs: type[Job]) -> Iterator[Any]:
    """Ask for the payloads heard so far."""
    with plain_engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        driver: Any = connection.connection.driver_connection
        connection.exec_driver_sql(f'LISTEN "{channel_of(Job.metadata.tables["session_job"])}"')
        yield lambda: sorted(each.payload for each in driver.notifies(timeout=1.0))


@pytest.mark.servers("postgresql")
def test_what_is_committed_is_heard_and_what_is_rolled_back_is_not(factory: Factory, heard: Any) -> None:
    with factory() as session:
        session.enqueue(send_receipt.using(queue="lost"), 1)
        session.flush()
        session.rollback()
        with session.begin_nested() as savepoint:
            session.enqueue(send_receipt, 2)
            session.flush()
            savepoint.rollback()
        session.enqueue(send_receipt, 3)  # the same queue again: its first NOTIFY went with the savepoint
        session.enqueue(send_receipt.using(queue="keyed", unique_key="k"), 4)
        session.flush()
        session.enqueue_many(send_receipt.using(queue="bulk"), [{"order_id": 5}])
        session.commit()
    assert heard() == ["bulk", "keyed", "mail"]


@pytest.mark.parametrize("twophase", [True, False])
@pytest.mark.servers("postgresql")
def test_a_two_phase_transaction_does_not_notify(factory: Factory, engine: Engine, twophase: bool) -> None:
    """PostgreSQL refuses to prepare a transaction that has."""
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    factory.configure(twophase=twophase)
    with factory() as session:
        session.enqueue(send_receipt, 1)
        session.flush()
    assert any("pg_notify" in each for each in statements) is not twophase


@pytest.mark.servers("mysql", "sqlite")
def test_elsewhere_the_setting_changes_nothing(factory: Factory, woken: list[str]) -> None:
    with factory.begin() as session:
        session.enqueue(send_receipt, 1)
    assert woken == ["mail"]


@pytest.mark.parametrize("name", ["task", "Task Ü", "t" * 63])
@pytest.mark.parametrize("schema", [None, "jobs"])
def test_channels_are_valid_and_differ_by_table(name: str, schema: str | None) -> None:
    channel = channel_of(Table(name, MetaData(), schema=schema))
    assert channel.isascii()
    assert channel.replace("_", "").isalnum()
    assert len(channel) <= 63
    assert channel != channel_of(Table(name + "x", MetaData(), schema=schema))
