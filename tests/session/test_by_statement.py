"""`enqueue_from`: a statement and the tasks for its rows are one change, whatever the database."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, String, delete, event, func, insert, literal, select, type_coerce, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, aliased, sessionmaker, with_loader_criteria

from sa_taskqueue.exceptions import InvalidArguments, InvalidSetting, TransactionEnded, UnsupportedStatement
from sa_taskqueue.session import TaskSession, enqueue_from
from sa_taskqueue.states import Status
from tests.session.models import Customer, Job
from tests.session.statement_models import Line, Order, line_changed, notify

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]

OPEN = Order.status == "open"
COMPLETE = update(Order).where(OPEN).values(status="complete")


@pytest.fixture
def orders(factory: Factory) -> list[int]:
    """The ids of five open orders; the third is of another tenant and has no customer."""
    with factory.begin() as session:
        made = [Order(customer=f"c{number}", tenant="a") for number in range(5)]
        made[2].customer, made[2].tenant = None, "b"
        session.add_all(made)
        session.flush()
        return [order.id for order in made]


def arguments(stored: Stored) -> list[dict[str, Any]]:
    """What the handlers get, by order."""
    return sorted((json.loads(body) for body in stored("body")), key=lambda body: body["order_id"])


def statuses(factory: Factory) -> list[str]:
    with factory() as session:
        return list(session.scalars(select(Order.status).order_by(Order.id)))


@pytest.mark.every_driver
def test_one_task_for_each_changed_row_with_its_new_values(
    factory: Factory, orders: list[int], stored: Stored, woken: list[str]
) -> None:
    with factory() as session:
        session.enqueue_from(COMPLETE, notify, order_id=Order.id)
        session.rollback()
        count = session.enqueue_from(
            COMPLETE, notify, order_id=Order.id, status=Order.status, customer=Order.customer, lang="fr"
        )
        assert (count, stored()) == (5, [])
        session.commit()
    expected = [
        {"order_id": each, "status": "complete", "customer": f"c{place}" if place != 2 else None, "lang": "fr"}
        for place, each in enumerate(orders)
    ]
    assert arguments(stored) == expected
    assert statuses(factory) == ["complete"] * 5
    assert set(stored("status")) == {Status.NEW}
    assert {each.version for each in stored("id")} == {7}
    assert woken == ["mail"]


@pytest.mark.every_driver
async def test_on_an_async_session_it_is_awaited(
    async_factory: Any, factory: Factory, orders: list[int], stored: Stored
) -> None:
    async with async_factory() as session:
        await session.enqueue_from(COMPLETE, notify, order_id=Order.id)
        await session.rollback()
        assert stored() == []
        savepoint = await session.begin_nested()
        await session.enqueue_from(COMPLETE, notify, order_id=Order.id)
        await savepoint.rollback()
        rows = await session.enqueue_from(
            COMPLETE.where(Order.id == orders[0]).returning(Order.id, Order.status), notify, order_id=Order.id
        )
        await session.commit()
    assert [tuple(row) for row in rows] == [(orders[0], "complete")]
    assert [body["order_id"] for body in arguments(stored)] == orders[:1]


def test_returning_gives_the_changed_rows(factory: Factory, orders: list[int], stored: Stored) -> None:
    with factory.begin() as session:
        rows = session.enqueue_from(COMPLETE.returning(Order.id, Order.status), notify, order_id=Order.id)
        assert sorted((row.id, row.status) for row in rows) == [(each, "complete") for each in orders]
        assert session.enqueue_from(COMPLETE.returning(Order.id), notify, order_id=Order.id) == []
    assert len(stored()) == 5


def test_a_delete_gives_the_old_values(factory: Factory, orders: list[int], stored: Stored) -> None:
    gone = delete(Order).where(Order.id.in_(orders[:2]))
    with factory() as session:
        assert session.enqueue_from(gone, notify, order_id=Order.id, status=Order.status) == 2
        session.rollback()
        rows = session.enqueue_from(gone.returning(Order.id), notify, order_id=Order.id, status=Order.status)
        session.commit()
    assert sorted(row.id for row in rows) == orders[:2]
    assert arguments(stored) == [{"order_id": each, "status": "open"} for each in orders[:2]]
    assert len(statuses(factory)) == 3


@pytest.mark.servers("sqlite", "postgresql", "mariadb", "postgresql18")
def test_an_insert_gives_the_new_rows(factory: Factory, orders: list[int], stored: Stored) -> None:
    new = insert(Order).values([{"status": "new", "total": 1}, {"status": "newer", "total": 2}])
    copies = insert(Order).from_select(
        ["status", "total", "tenant"], select(literal("copy"), Order.total, Order.tenant)
    )
    with factory.begin() as session:
        rows = session.enqueue_from(new.returning(Order.id, Order.status), notify, order_id=Order.id)
        assert [row.status for row in rows] == ["new", "newer"]
        assert session.enqueue_from(copies, notify, order_id=Order.id, status=Order.status) == 7
    assert len(stored()) == 9
    assert [body["order_id"] for body in arguments(stored)][:2] == [row.id for row in rows]


@pytest.mark.servers("mysql")
def test_where_an_insert_tells_no_keys_it_is_refused(factory: Factory, orders: list[int], stored: Stored) -> None:
    with factory() as session, pytest.raises(UnsupportedStatement, match="enqueue from a select"):
        session.enqueue_from(insert(Order).values(status="new"), notify, order_id=Order.id)


def test_a_select_gives_the_rows_it_finds(factory: Factory, orders: list[int], stored: Stored) -> None:
    newest = select(Order).where(OPEN).order_by(Order.id.desc()).limit(2)
    tenants = select(Order.tenant).distinct()
    groups = select(Order.tenant, func.count()).group_by(Order.tenant)
    with factory.begin() as session:
        assert session.enqueue_from(newest, notify, order_id=Order.id) == 2
    assert [body["order_id"] for body in arguments(stored)] == orders[3:]
    with factory.begin() as session:
        session.query(Job).delete()
        assert session.enqueue_from(tenants, notify, order_id=0, status=Order.tenant) == 2
        assert session.enqueue_from(groups, notify, order_id=func.count(Order.id), status=Order.tenant) == 2
    assert arguments(stored)[2:] == [{"order_id": 1, "status": "b"}, {"order_id": 4, "status": "a"}]


def test_a_table_without_a_mapped_class_and_a_key_of_two_columns(factory: Factory, jobs: Any, stored: Stored) -> None:
    table: Any = Line.__table__
    with factory.begin() as session:
        session.add_all([Line(code=code, number=number, status="x") for code in ("a", "b", "ü") for number in (1, 2)])
        changed = update(table).where(table.c.number == 2).values(status="y").returning(table.c.code)
        rows = session.enqueue_from(changed, line_changed, code=table.c.code, number=table.c.number)
        assert sorted(row.code for row in rows) == ["a", "b", "ü"]
        gone = delete(Line).where(Line.status == "y")
        assert session.enqueue_from(gone, line_changed, code=Line.code, number=Line.number) == 3
    assert len(stored()) == 6


def test_options_are_those_of_using(factory: Factory, orders: list[int], stored: Stored) -> None:
    later = notify.using(
        queue="other", priority=-3, max_attempts=2, headers={"a": "b"}, run_after=dt.timedelta(hours=1)
    )
    at = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    with factory.begin() as session:
        one = COMPLETE.where(Order.id == orders[0])
        assert session.enqueue_from(one, later, order_id=Order.id) == 1
        session.enqueue_from(select(Order).where(Order.id == orders[1]), notify.using(run_after=at), order_id=Order.id)
    assert sorted(stored("queue")) == ["mail", "other"]
    assert set(stored("status")) == {Status.SCHEDULED}
    assert max(stored("scheduled_at")) == at
    assert sorted(stored("max_attempts")) == [2, 10]
    assert sorted(stored("priority")) == [-3, 0]
    assert [json.loads(each) for each in stored("headers") if each] == [{"a": "b"}]


def test_a_savepoint_rolled_back_takes_both(
    factory: Factory, orders: list[int], stored: Stored, woken: list[str]
) -> None:
    with factory() as session:
        with session.begin_nested() as savepoint:
            session.enqueue_from(COMPLETE, notify, order_id=Order.id)
            savepoint.rollback()
        session.commit()
        with session.begin_nested():
            session.enqueue_from(COMPLETE.where(Order.id == orders[0]), notify, order_id=Order.id)
        session.commit()
    assert len(stored()) == 1
    assert woken == ["mail"]


def test_nothing_changed_wakes_nobody(factory: Factory, orders: list[int], woken: list[str]) -> None:
    with factory.begin() as session:
        assert session.enqueue_from(COMPLETE.where(Order.id < 0), notify, order_id=Order.id) == 0
    assert woken == []


def test_what_is_pending_is_flushed_first_and_loaded_objects_are_read_anew(factory: Factory, orders: list[int]) -> None:
    with factory() as session:
        loaded = session.get_one(Order, orders[0])
        other = Customer(name="Ada")
        session.add_all([new := Order(customer="late"), other])
        assert session.enqueue_from(COMPLETE, notify, order_id=Order.id) == 6
        assert (loaded.status, new.status) == ("complete", "complete")
        assert "name" in vars(other)  # of another table, so it keeps its values
        stale = COMPLETE.values(status="open").execution_options(synchronize_session=False)
        session.enqueue_from(
            update(Order).values(status="x").execution_options(**stale.get_execution_options()), notify, order_id=1
        )
        assert loaded.status == "complete"


def test_the_sessions_own_criteria_hold(factory: Factory, orders: list[int], stored: Stored) -> None:
    """As a tenant's filter by `do_orm_execute` does for the statements of the ORM; it asks for the old values only."""
    with factory() as session:

        @event.listens_for(session, "do_orm_execute")
        def only_mine(state: Any) -> None:
            state.statement = state.statement.options(with_loader_criteria(Order, Order.tenant == "b"))

        moved = update(Order).values(tenant="c")
        assert session.enqueue_from(moved, notify, order_id=Order.id, status=Order.tenant) == 1
        session.rollback()
        assert session.enqueue_from(select(Order), notify, order_id=Order.id) == 1
        assert session.enqueue_from(delete(Order).returning(Order.id), notify, order_id=Order.id) == [(orders[2],)]
        session.commit()
    assert [body["order_id"] for body in arguments(stored)] == [orders[2]] * 2


def test_what_changes_the_where_is_changed_once(factory: Factory, orders: list[int], stored: Stored) -> None:
    """The new values no longer fit the WHERE, and a second look at it would find nothing, or others."""
    with factory.begin() as session:
        closing = update(Order).where(OPEN).values(status="closed", total=Order.total + 1)
        assert session.enqueue_from(closing, notify, order_id=Order.id, status=Order.status) == 5
        assert session.enqueue_from(closing, notify, order_id=Order.id) == 0
        assert list(session.scalars(select(Order.total))) == [1] * 5
    assert {body["status"] for body in arguments(stored)} == {"closed"}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({}, "missing a required argument"),
    "unknown": ({"order_id": Order.id, "nope": 1}, "it has no parameter nope"),
    "a column of another type": ({"order_id": Order.customer}, "its column holds text"),
    "a value of another type": ({"order_id": "x"}, "must be a whole number"),
    "a decimal for an int": ({"order_id": Order.total}, "a decimal number"),
    "NULL for what takes none": ({"order_id": Order.id, "status": Order.customer}, "may be NULL"),
    "an unknown type": ({"order_id": func.whatever()}, "its SQL type is not known"),
    "no time zone": ({"order_id": Order.at}, "has no time zone"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused_before_any_sql(
    factory: Factory, engine: Engine, orders: list[int], case: str
) -> None:
    given, message = WRONG[case]
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    with factory() as session, pytest.raises(InvalidArguments, match=message):
        session.enqueue_from(COMPLETE, notify, **given)
    assert sent == []


def test_a_nullable_column_that_the_where_excludes_is_taken(
    factory: Factory, orders: list[int], stored: Stored
) -> None:
    with factory.begin() as session:
        named = COMPLETE.where(Order.customer.is_not(None))
        assert session.enqueue_from(named, notify, order_id=Order.id, status=Order.customer) == 4
        with pytest.raises(InvalidArguments, match="may be NULL"):  # it is the new value that counts
            session.enqueue_from(named.values(customer=None), notify, order_id=Order.id, status=Order.customer)


def test_a_null_that_no_check_could_see_stores_nothing(factory: Factory, orders: list[int], stored: Stored) -> None:
    unseen = type_coerce(func.nullif(Order.customer, "c1"), String)
    with factory() as session:
        with pytest.raises(InvalidArguments, match="a row gave NULL"):
            session.enqueue_from(COMPLETE, notify, order_id=Order.id, status=unseen)
        try:
            session.commit()  # what a caller may do who has caught the error
        except DBAPIError:
            session.rollback()
    assert (stored(), statuses(factory)) == ([], ["open"] * 5)


def test_statements_that_cannot_be_are_refused(factory: Factory, orders: list[int]) -> None:
    with factory() as session:
        for statement in (
            "UPDATE x",
            select(Order.id).union(select(Order.id)),
            update(aliased(Order)).values(status="x"),
        ):
            with pytest.raises(InvalidSetting, match="statement is"):
                session.enqueue_from(statement, notify, order_id=Order.id)  # type: ignore[call-overload]
        with pytest.raises(InvalidSetting, match="columns"):
            session.enqueue_from(COMPLETE.returning(Order), notify, order_id=Order.id)
        with pytest.raises(InvalidArguments, match="unique_key"):
            session.enqueue_from(COMPLETE, notify.using(unique_key="x"), order_id=Order.id)
        with pytest.raises(InvalidSetting, match="task is"):
            session.enqueue_from(COMPLETE, lambda: None, order_id=Order.id)  # type: ignore[call-overload]


@pytest.mark.servers("sqlite", "mysql", "mariadb")
def test_a_change_of_several_tables_is_refused_where_it_is_made_by_key(factory: Factory, orders: list[int]) -> None:
    both = COMPLETE.where(Line.code == Order.customer)
    with factory() as session, pytest.raises(UnsupportedStatement, match="several tables"):
        session.enqueue_from(both, notify, order_id=Order.id)


def test_sub_queries_may_name_other_tables(factory: Factory, orders: list[int], stored: Stored) -> None:
    lines = select(func.count(Line.code)).where(Line.code == Order.customer).scalar_subquery()
    with factory.begin() as session:
        session.add(Line(code="c1", number=1, status="x"))
        having = COMPLETE.where(Order.customer.in_(select(Line.code)))
        assert session.enqueue_from(having, notify, order_id=Order.id + lines * 1000) == 1
    assert arguments(stored) == [{"order_id": orders[1] + 1000}]


@pytest.mark.servers("mysql", "mariadb")
def test_in_two_phases_a_temporary_table_is_refused(engine: Engine, orders: list[int]) -> None:
    with TaskSession(engine, twophase=True) as session, pytest.raises(UnsupportedStatement, match="two phases"):
        session.enqueue_from(COMPLETE, notify, order_id=Order.id)


def test_a_session_of_any_kind_and_none_after_the_commit(engine: Engine, orders: list[int], stored: Stored) -> None:
    with Session(engine) as session:
        refused: list[bool] = []

        @event.listens_for(session, "after_commit")
        def listener(session: Any) -> None:
            with pytest.raises(TransactionEnded):
                enqueue_from(session, COMPLETE, notify, order_id=Order.id)
            refused.append(True)

        assert enqueue_from(session, COMPLETE, notify, order_id=Order.id) == 5
        session.commit()
        assert refused == [True]
    assert len(stored()) == 5


@pytest.mark.slow
def test_ids_are_unique_and_of_their_time(factory: Factory, jobs: Any, engine: Engine) -> None:
    """50,000 rows of one statement; the benchmark looks at 1,000,000."""
    with factory.begin() as session:
        session.add_all([Line(code="x", number=number, status="x") for number in range(1000)])
        session.flush()
        second = aliased(Line)
        before = dt.datetime.now(dt.UTC)
        crossed = select(Line).join(second, second.number < 50)
        assert session.enqueue_from(crossed, line_changed, code=Line.code, number=second.number) == 50_000
        assert session.scalar(select(func.count(Job.id.distinct()))) == 50_000
        some = list(session.scalars(select(Job.id).limit(500)))
        after = dt.datetime.now(dt.UTC)
    assert {(each.version, each.variant) for each in some} == {(7, "specified in RFC 4122")}
    slack = dt.timedelta(seconds=5)
    times = [dt.datetime.fromtimestamp((each.int >> 80) / 1000, dt.UTC) for each in some]
    assert before - slack < min(times) <= max(times) < after + slack


@pytest.mark.servers("postgresql", "mysql", "mariadb", "postgresql18")
def test_a_row_that_another_transaction_changes_meanwhile_is_left_out(
    engine: Engine, factory: Factory, orders: list[int], stored: Stored
) -> None:
    """Changed and queued are the same rows, with the values that are stored."""
    sent = threading.Event()
    event.listen(engine, "before_cursor_execute", lambda *args: sent.set() if "status" in args[2] else None)

    def complete() -> list[tuple[int, str]]:
        with factory.begin() as session:
            session.scalar(select(func.count(Job.id)))  # at REPEATABLE READ this is the snapshot
            sent.clear()
            rows = session.enqueue_from(
                COMPLETE.returning(Order.id, Order.customer), notify, order_id=Order.id, customer=Order.customer
            )
            return [(row.id, str(row.customer)) for row in rows]

    with ThreadPoolExecutor(1) as pool:
        with factory.begin() as other:
            other.execute(update(Order).where(Order.id == orders[0]).values(status="void"))
            other.execute(update(Order).where(Order.id == orders[1]).values(customer="new"))
            sent.clear()
            changed = pool.submit(complete)
            assert sent.wait(60)
        rows = changed.result(60)
    assert sorted(each for each, _ in rows) == orders[1:]
    assert dict(rows)[orders[1]] == "new"
    assert [body["order_id"] for body in arguments(stored)] == orders[1:]
    assert arguments(stored)[0]["customer"] == "new"
    assert statuses(factory) == ["void", *["complete"] * 4]
