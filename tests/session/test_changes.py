"""`on_change`: what is enqueued because an attribute changed is stored with the change, once, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, update
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue.exceptions import InvalidArguments, InvalidSetting
from sa_taskqueue.session import TaskSession
from tests.session.change_models import State, Ticket, UrgentTicket, closed, queue
from tests.session.models import Customer, Job

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]


@pytest.fixture
def ticket_id(factory: Factory) -> int:
    """An open ticket."""
    with factory.begin() as session:
        session.add(ticket := Ticket(note="n"))
        session.flush()
        return ticket.id


def bodies(stored: Stored) -> list[dict[str, Any]]:
    return [json.loads(body) for body in stored("body")]


def test_a_change_enqueues_in_its_transaction(
    factory: Factory, ticket_id: int, stored: Stored, woken: list[str]
) -> None:
    with factory() as session:
        session.get_one(Ticket, ticket_id).state = State.DONE
        session.flush()
        session.rollback()
        session.get_one(Ticket, ticket_id).state = State.DONE
        assert stored() == []
        session.commit()
    assert bodies(stored) == [{"ticket_id": ticket_id, "state": "it's done", "note": "n", "lang": "fr"}]
    assert woken == ["mail"]


@pytest.mark.every_driver
async def test_on_an_async_session_also_where_the_old_value_was_not_loaded(
    async_factory: Any, ticket_id: int, stored: Stored
) -> None:
    async with async_factory() as session:
        ticket = await session.get_one(Ticket, ticket_id)
        await session.commit()  # which expires it
        ticket.state = State.OPEN  # as it is already
        ticket.points = 3
        await session.commit()
        assert stored() == []
        ticket.state = State.DONE
        await session.commit()
    assert len(stored()) == 1


def test_a_new_row_is_a_change_from_nothing(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        session.add_all([Ticket(state=State.DONE), Ticket(), Ticket(points=11), UrgentTicket(state=State.VOID)])
        session.add(Customer(name="Ada"))
    assert [body["state"] for body in bodies(stored) if "state" in body] == ["it's done", "void"]
    assert [body["points"] for body in bodies(stored) if "points" in body] == [11]
    assert all(body["ticket_id"] for body in bodies(stored))
    assert sorted(stored("priority")) == [-1, 0, 0]


def test_set_twice_is_once_and_changed_back_is_nothing(factory: Factory, ticket_id: int, stored: Stored) -> None:
    with factory.begin() as session:
        ticket = session.get_one(Ticket, ticket_id)
        ticket.state = State.VOID
        ticket.state = State.DONE
        session.flush()
        session.flush()
        ticket.note = "x"
    assert [body["state"] for body in bodies(stored)] == ["it's done"]
    with factory.begin() as session:
        ticket = session.get_one(Ticket, ticket_id)
        ticket.state = State.VOID
        ticket.state = State.DONE
    assert len(stored()) == 1


def test_from_and_when(factory: Factory, ticket_id: int, stored: Stored) -> None:
    for state, points in ((State.VOID, 5), (State.OPEN, 11), (State.DONE, 11), (State.OPEN, 12)):
        with factory.begin() as session:
            ticket = session.get_one(Ticket, ticket_id)
            ticket.state, ticket.points = state, points
    assert sorted(stored("name")) == ["closed", "closed", "reopened", "scored", "scored"]


def test_a_savepoint_rolled_back_takes_it_along(
    factory: Factory, ticket_id: int, stored: Stored, woken: list[str]
) -> None:
    with factory() as session:
        ticket = session.get_one(Ticket, ticket_id)
        with session.begin_nested() as savepoint:
            ticket.state = State.DONE
            session.flush()
            savepoint.rollback()
        session.commit()
        assert (stored(), woken) == ([], [])
        with session.begin_nested():
            ticket.state = State.VOID
        session.commit()
    assert len(stored()) == 1
    assert woken == ["mail"]


def test_a_value_made_by_the_database_is_read(factory: Factory, ticket_id: int, stored: Stored) -> None:
    with factory.begin() as session:
        session.get_one(Ticket, ticket_id).points = Ticket.points + 20
        session.flush()
        session.get_one(Ticket, ticket_id).points = Ticket.points + 0
    assert bodies(stored) == [{"ticket_id": ticket_id, "points": 20}]


def test_a_change_made_by_a_later_listener_counts(factory: Factory, ticket_id: int, stored: Stored) -> None:
    with factory() as session:

        @event.listens_for(session, "before_flush")
        def close(session: Any, _context: object, _objects: object) -> None:
            for ticket in session.dirty:
                ticket.state = State.DONE

        session.get_one(Ticket, ticket_id).note = "y"
        session.commit()
    assert len(stored()) == 1


def test_whoever_commits_the_connection_has_the_task_with_the_change(
    engine: Engine, factory: Factory, ticket_id: int, stored: Stored
) -> None:
    """A session that is only flushed: the caller's own COMMIT must find both."""
    with engine.connect() as connection, connection.begin():
        session = TaskSession(connection)
        session.get_one(Ticket, ticket_id).state = State.DONE
        session.flush()
        session.expunge_all()
    assert len(stored()) == 1


def test_what_is_not_seen(engine: Engine, factory: Factory, ticket_id: int, stored: Stored) -> None:
    with factory.begin() as session:
        session.execute(update(Ticket).values(state=State.DONE))
    with Session(engine) as plain, plain.begin():
        plain.get_one(Ticket, ticket_id).state = State.VOID
    assert stored() == []


def test_an_argument_that_does_not_fit_ends_the_flush(factory: Factory, ticket_id: int, stored: Stored) -> None:
    change = queue.on_change(Ticket.note, to="bad").enqueue(closed, lambda ticket: {"ticket_id": "x", "state": "open"})
    try:
        with factory() as session:
            session.get_one(Ticket, ticket_id).note = "bad"
            with pytest.raises(InvalidArguments, match="ticket_id"):
                session.commit()
            session.rollback()
            assert session.scalar(select(Ticket.note)) == "n"
    finally:
        from sa_taskqueue.changes import _reactions

        _reactions[Ticket].remove(change.reactions[0])
    assert stored() == []


def test_wrong_registrations_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="attribute is"):
        queue.on_change("status")
    with pytest.raises(InvalidSetting, match="attribute is"):
        queue.on_change(Job.customer)
    with pytest.raises(InvalidSetting, match="by is"):
        queue.on_change(Ticket.state, by="magic")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="when is"):
        queue.on_change(Ticket.state, when=Ticket.points > 1)
    with pytest.raises(InvalidSetting, match="when is"):
        queue.on_change(Ticket.state, when=lambda ticket: True, by="trigger")
    change, trigger = queue.on_change(Ticket.state), queue.on_change(Ticket.state, by="trigger")
    with pytest.raises(InvalidSetting, match="task is"):
        change.enqueue(len)  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match="missing"):
        change.enqueue(closed, ticket_id=Ticket.id)
    with pytest.raises(InvalidArguments, match="must be"):
        change.enqueue(closed, ticket_id="x", state=Ticket.state)
    with pytest.raises(InvalidSetting, match="state is"):
        change.enqueue(closed, ticket_id=Ticket.id, state=Job.status)
    with pytest.raises(InvalidSetting, match="runs no Python"):
        trigger.enqueue(closed, lambda ticket: {})
    with pytest.raises(InvalidSetting, match="without unique_key"):
        trigger.enqueue(closed.using(unique_key="x"), ticket_id=Ticket.id, state=Ticket.state)
    with pytest.raises(InvalidArguments, match="its column holds text"):
        trigger.enqueue(closed, ticket_id=Ticket.note, state=Ticket.state)
    assert len(queue.trigger_reactions) == 2
