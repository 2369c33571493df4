"""Unique keys: race-free, without poisoning the caller's transaction (R08, R12, R40, R52)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, inspect, select, update
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.exceptions import DuplicateTask, TaskRunning
from sa_taskqueue.session import TaskSession, duplicate_of
from sa_taskqueue.states import Status
from tests.session.models import Customer, Job, refresh, send_receipt
from tests.support import eventually

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]
Count = Callable[[type[Any]], int]

once = send_receipt.using(unique_key="once")


def test_one_task_per_key_and_the_business_rows_commit(
    factory: Factory, stored: Stored, count: Count, woken: list[str]
) -> None:
    with factory.begin() as session:
        session.add(Customer(name="Ada"))
        first = session.enqueue(once, 1)
        second = session.enqueue(once, 2)
        session.flush()
        third = session.enqueue(once, 3)
        session.add(Customer(name="Bob"))
        session.flush()
        known = first.id
        assert (duplicate_of(first), duplicate_of(second), duplicate_of(third)) == (None, known, known)
        assert first in session
        assert inspect(first).persistent
        assert inspect(second).transient
        assert second not in session
    assert stored() == [known]
    assert count(Customer) == 2
    assert woken == ["mail"]


def test_the_key_is_per_task_name(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        session.enqueue(once, 1)
        session.enqueue(refresh.using(unique_key="once"), "x")
    assert len(stored()) == 2


def test_a_key_of_an_earlier_transaction(factory: Factory, stored: Stored, woken: list[str]) -> None:
    with factory.begin() as session:
        known = session.enqueue(once, 1).id
    with factory.begin() as session:
        duplicate = session.enqueue(once, 2)
    assert stored() == [known]
    assert duplicate_of(duplicate) == known
    assert woken == ["mail"]


def test_the_foreign_key_of_a_parent_in_the_same_flush(factory: Factory, stored: Stored, count: Count) -> None:
    with factory.begin() as session:
        row = session.enqueue(once, 1)
        row.customer = Customer(name="Ada")
        row.tenant = "acme"
    with factory() as session:
        found = session.scalars(select(Job)).one()
        assert (found.customer and found.customer.name, found.tenant) == ("Ada", "acme")
    assert count(Customer) == 1


@pytest.mark.parametrize("parent", ["new", "loaded"])
def test_the_parents_collection_holds_the_row_and_nobody_is_warned(
    factory: Factory, stored: Stored, parent: str
) -> None:
    with factory(expire_on_commit=False) as session:
        customer = Customer(name="Ada")
        session.add(customer)
        if parent == "loaded":
            session.commit()
        row = session.enqueue(once, 1)
        row.customer = customer
        duplicate = session.enqueue(once, 2)
        customer.jobs.append(duplicate)
        session.flush()
        assert customer.jobs == [row]
        assert row.customer is customer
        assert not session.dirty
        session.commit()
        assert stored("customer_id") == [customer.id]


def test_a_stored_row_goes_on_as_any_other(factory: Factory) -> None:
    with factory() as session:
        row = session.enqueue(once, 1)
        session.flush()
        row.tenant = "later"
        session.commit()
        assert row.tenant == "later"
        assert row.status is Status.NEW
        session.delete(row)
        session.commit()
        assert session.scalars(select(Job)).all() == []


def test_raise_tells_at_the_flush_which_task_holds_the_key(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        known = session.enqueue(once, 1).id
    with factory() as session:
        session.enqueue(send_receipt.using(unique_key="once", on_duplicate="raise"), 2)
        with pytest.raises(DuplicateTask) as raised:
            session.commit()
        assert (raised.value.id, raised.value.key) == (known, "once")
        assert str(raised.value).startswith(f"The task {known} holds")
    assert stored() == [known]


def test_raise_in_a_savepoint_leaves_the_transaction_whole(factory: Factory, stored: Stored, count: Count) -> None:
    with factory.begin() as session:
        session.enqueue(once, 1)
    with factory.begin() as session:
        session.add(Customer(name="Ada"))
        savepoint = session.begin_nested()
        session.add(Customer(name="Bob"))
        session.enqueue(send_receipt.using(unique_key="once", on_duplicate="raise"), 2)
        with pytest.raises(DuplicateTask):
            savepoint.commit()
        savepoint.rollback()
        session.enqueue(send_receipt, 3)
    assert count(Customer) == 1
    assert len(stored()) == 2


def test_replace_gives_the_waiting_task_the_new_values(factory: Factory, stored: Stored, woken: list[str]) -> None:
    with factory.begin() as session:
        known = session.enqueue(once, 1).id
    replacing = send_receipt.using(unique_key="once", on_duplicate="replace", priority=7)
    with factory.begin() as session:
        row = session.enqueue(replacing, 2)
    assert duplicate_of(row) == known
    assert (stored(), stored("priority"), stored("epoch")) == ([known], [7], [1])
    assert '"order_id": 2' in stored("body")[0].replace('":2', '": 2')
    assert woken == ["mail", "mail"]


@pytest.mark.parametrize("until", ["start", "end"])
def test_replace_of_a_running_task_is_never_silent(factory: Factory, stored: Stored, until: Any) -> None:
    bound = send_receipt.using(unique_key="once", unique_until=until, on_duplicate="replace")
    with factory.begin() as session:
        known = session.enqueue(bound, 1).id
        freed = {"unique_hash": None} if until == "start" else {}
        session.flush()
        session.execute(update(Job).values(status=Status.RUNNING, **freed))
    with factory() as session:
        session.enqueue(bound, 2)
        if until == "end":
            with pytest.raises(TaskRunning) as raised:
                session.commit()
            assert raised.value.id == known
        else:
            session.commit()
    assert len(stored()) == (1 if until == "end" else 2)


@pytest.mark.parametrize("ending", ["savepoint", "root"])
def test_rolled_back_rows_are_transient_again_with_their_values(
    factory: Factory, stored: Stored, woken: list[str], ending: str
) -> None:
    with factory() as session:
        session.connection()
        savepoint = session.begin_nested()
        row = session.enqueue(once, 1)
        session.flush()
        known = row.id
        (savepoint if ending == "savepoint" else session).rollback()
        assert inspect(row).transient
        assert row not in session
        assert row.id == known
        again = session.enqueue(once, 2)
        session.commit()
        assert stored() == [again.id]
    assert woken == ["mail"]


def test_a_released_savepoint_hands_its_rows_to_the_root(factory: Factory, stored: Stored) -> None:
    with factory() as session:
        with session.begin_nested():
            row = session.enqueue(once, 1)
        session.rollback()
        assert inspect(row).transient
    assert stored() == []


def test_the_caller_finds_its_transaction_usable_after_a_duplicate(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        session.enqueue(once, 1)
    with factory.begin() as session:
        for number in range(5):
            session.enqueue(once, number)
            session.flush()
            assert session.scalars(select(Customer)).all() == []
        session.enqueue(send_receipt, 9)
    assert len(stored()) == 2


def test_a_row_expunged_before_the_flush_is_not_stored(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        row = session.enqueue(once, 1)
        session.expunge(row)
        session.add(Customer(name="Ada"))
    assert stored() == []


def test_a_user_listener_sees_the_parents_before_the_keyed_row(factory: Factory, engine: Engine) -> None:
    order: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT"):
            order.append("job" if "session_job" in statement else "customer")

    with factory.begin() as session:
        session.enqueue(once, 1)
        session.add(Customer(name="Ada"))
    event.remove(engine, "before_cursor_execute", note)
    assert order == ["customer", "job"]


def test_keys_are_inserted_in_one_order(factory: Factory, stored: Stored) -> None:
    """Opposite orders in two transactions would deadlock."""
    hashes: list[list[bytes]] = []
    for names in (["a", "b", "c"], ["c", "b", "a"]):
        with factory() as session:
            written: list[bytes] = []
            rows = [session.enqueue(refresh.using(unique_key=name), name) for name in names]
            event.listen(session, "detached_to_persistent", lambda _s, row, to=written: to.append(row.unique_hash))
            session.flush()
            assert len(rows) == len(written)
            hashes.append(written)
            session.rollback()
    assert hashes[0] == hashes[1] == sorted(hashes[0])
    assert stored() == []


@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("first_ends", ["commit", "rollback"])
def test_the_second_waits_for_the_first_and_is_right_either_way(
    factory: Factory, stored: Stored, first_ends: str
) -> None:
    """R52: the loser of a race must not be told "exists" when the winner then rolls back."""
    results: list[Any] = []
    with factory() as first:
        winner = first.enqueue(once, 1)
        first.flush()
        known = winner.id

        def compete() -> None:
            with factory.begin() as second:
                row = second.enqueue(once, 2)
            results.append((duplicate_of(row), row))

        thread = threading.Thread(target=compete)
        thread.start()
        getattr(first, first_ends)()
        thread.join(60)
    eventually(lambda: results)
    if first_ends == "commit":
        assert results[0][0] == known
        assert stored() == [known]
    else:
        assert results[0][0] is None
        assert len(stored()) == 1


@pytest.mark.every_driver
def test_every_sync_driver(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        session.enqueue(once, 1)
        session.enqueue(once, 2)
    with factory.begin() as session:
        session.enqueue(once, 3)
        session.enqueue(send_receipt.using(unique_key="once", on_duplicate="replace"), 4)
    assert len(stored()) == 1


@pytest.mark.every_driver
async def test_every_async_driver(async_factory: Any, stored: Stored, woken: list[str]) -> None:
    async with async_factory() as session:
        row = session.enqueue(once, 1)
        row.customer = Customer(name="Ada")
        other = session.enqueue(once, 2)
        known = row.id
        await session.commit()
        assert duplicate_of(other) == known
    async with async_factory() as session:
        savepoint = await session.begin_nested()
        fresh = session.enqueue(send_receipt.using(unique_key="fresh"), 1)
        await session.flush()
        await savepoint.rollback()
        assert inspect(fresh).transient
        session.enqueue(send_receipt.using(unique_key="once", on_duplicate="raise"), 2)
        with pytest.raises(DuplicateTask):
            await session.commit()
    assert stored() == [known]
    assert woken == ["mail"]
