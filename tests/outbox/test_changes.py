"""Messages because of changed attributes: in order with all others of their key, and stored with the change."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.changes import Publication
from sa_taskqueue.exceptions import InvalidMessage, InvalidSetting, MissingTable, UnsupportedStatement
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.session import TaskSession
from sa_taskqueue.store.sequences import assign_waiting
from sa_taskqueue.triggers import Triggers
from tests.outbox.change_models import Shipment, by_trigger
from tests.outbox.models import Base, Outbox, OutboxKey, bare, queue

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]
ADA, BOB = uuid.UUID(int=10, version=4), uuid.UUID(int=11, version=4)


@pytest.fixture
def shipments(factory: Factory) -> None:
    with factory.begin() as session:
        session.add_all(
            [Shipment(id=1, customer=ADA), Shipment(id=2, customer=ADA, note="n"), Shipment(id=3, customer=BOB)]
        )


def test_a_message_of_a_change_is_numbered_with_the_commit(factory: Factory, shipments: None, stored: Stored) -> None:
    """Though the change is flushed by the commit itself."""
    with factory.begin() as session:
        session.publish("first", 0, key=str(ADA))
        session.get_one(Shipment, 1).status = "sent"
        session.get_one(Shipment, 2).status = "sent"
    with factory.begin() as session:
        session.get_one(Shipment, 3).status = "sent"
    assert sorted(stored("key", "seq", "status")) == sorted(
        [(str(ADA), number, "QUEUED") for number in (1, 2, 3)] + [(str(BOB), 1, "QUEUED")]
    )
    found = [json.loads(payload) for payload in stored("payload")]
    assert {"id": 2, "note": "n", "by": "us"} in found


def test_rolled_back_it_is_nothing(factory: Factory, shipments: None, stored: Stored, woken: list[str]) -> None:
    with factory() as session:
        with session.begin_nested() as savepoint:
            session.get_one(Shipment, 1).status = "sent"
            session.flush()
            savepoint.rollback()
        session.commit()
        session.get_one(Shipment, 1).status = "lost"
        session.flush()
        session.rollback()
    assert (stored(), woken) == ([], [])
    with factory() as session:
        session.get_one(Shipment, 1).status = "lost"
        session.commit()
    assert stored("topic", "payload", "type", "seq") == [("shipments.lost", "[1]", "Lost", None)]
    assert woken == ["ob_outbox"]


async def test_on_an_async_session(async_factory: Any, factory: Factory, shipments: None, stored: Stored) -> None:
    async with async_factory() as session:
        (await session.get_one(Shipment, 1)).status = "sent"
        await session.commit()
    assert stored("seq") == [1]


def test_wrong_registrations_are_refused() -> None:
    change = queue.on_change(Shipment.status)
    with pytest.raises(InvalidMessage, match="topic"):
        change.publish("a b", 1)
    with pytest.raises(InvalidSetting, match="payload or key"):
        change.publish("t", {"x": Outbox.topic})
    with pytest.raises(MissingTable):
        bare.on_change(Shipment.status).publish("t", 1)
    trigger = queue.on_change(Shipment.status, by="trigger")
    with pytest.raises(InvalidSetting, match="runs no Python"):
        trigger.publish("t", lambda shipment: 1)
    with pytest.raises(InvalidMessage, match="key"):
        trigger.publish("t", 1, key=Shipment.id == 1)


@pytest.fixture
def triggers(engine: Engine, shipments: None) -> Any:
    """Those of the one change here, for the time of a test."""
    [reaction] = by_trigger.reactions
    made = Triggers([reaction])
    with engine.begin() as connection:
        made.drop(Base.metadata, connection)
        made.create(Base.metadata, connection)
    yield made
    with engine.begin() as connection:
        made.drop(Base.metadata, connection)


def test_a_trigger_publishes_for_raw_writers(engine: Engine, triggers: Any, stored: Stored) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE ob_shipment SET note = :note"), {"note": "it's b"})
        connection.execute(text("UPDATE ob_shipment SET note = 'c'"))
        connection.execute(text("UPDATE ob_shipment SET note = 'a' WHERE id = 3"))
    assert sorted(json.loads(each)["note"] for each in stored("payload")) == ["a", *["it's b"] * 3]
    assert set(stored("topic", "status", "key_hash")) == {("shipments.noted", "NEW", None)}
    assert sorted(stored("key")) == sorted([str(ADA)] * 2 + [str(BOB)] * 2)


def test_with_an_ordered_key_the_relay_numbers_them(engine: Engine, shipments: None, stored: Stored) -> None:
    before = list(queue.trigger_reactions)
    change = queue.on_change(Shipment.note, to="in order", by="trigger", name="ob_in_order")
    change.publish("shipments.ordered", {"id": Shipment.id}, key=Shipment.customer)
    queue.trigger_reactions[:] = before
    made = Triggers([each for each in change.reactions if isinstance(each, Publication)])
    if engine.dialect.name == "sqlite":
        with pytest.raises(UnsupportedStatement, match="ordered=False"):
            made.create_statements(engine.dialect)
        return
    with engine.begin() as connection:
        made.create(Base.metadata, connection)
    try:
        with engine.begin() as connection:
            connection.execute(text("UPDATE ob_shipment SET note = 'in order'"))
        assert set(stored("key_hash")) == {key_hash(str(ADA)), key_hash(str(BOB))}
        with engine.begin() as connection:
            outbox: Any = Outbox.__table__
            keys: Any = OutboxKey.__table__
            assert assign_waiting(connection, outbox, keys, 10) == 3
        assert sorted(stored("seq")) == [1, 1, 2]
    finally:
        with engine.begin() as connection:
            made.drop(Base.metadata, connection)


def test_a_new_row_whose_value_is_not_set_is_not_read_again(factory: Factory, engine: Engine, tables: None) -> None:
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    with factory.begin() as session:
        session.add(Shipment(id=9, customer=ADA))
    assert [sql for sql in sent if sql.startswith("SELECT")] == []
