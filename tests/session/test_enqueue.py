from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any, cast

import pytest
from sqlalchemy import Engine, event, insert, select
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue.exceptions import (
    BodyNotSerializable,
    InvalidArguments,
    InvalidSetting,
    NaiveDatetime,
    NoTransaction,
    TransactionEnded,
)
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session import TaskSession, enqueue
from sa_taskqueue.states import Status
from tests.session.models import Base, Customer, Job, send_receipt

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]


def test_the_row_is_an_instance_of_the_users_model_and_its_id_is_known_at_once(
    factory: Factory, stored: Stored
) -> None:
    with factory.begin() as session:
        row = session.enqueue(send_receipt, 7, lang="fr")
        assert isinstance(row, Job)
        known = row.id
        row.tenant = "acme"
    assert stored() == [known]
    assert stored("tenant") == ["acme"]
    assert json.loads(stored("body")[0]) == {"order_id": 7, "lang": "fr"}
    assert stored("status") == [Status.NEW]
    assert stored("queue") == ["mail"]


def test_nothing_is_sent_before_the_flush(factory: Factory, engine: Engine) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with factory() as session:
        session.enqueue(send_receipt, 1)
        assert statements == []


def test_a_rollback_takes_the_task_with_it(factory: Factory, stored: Stored) -> None:
    with factory() as session:
        row = session.enqueue(send_receipt, 1)
        session.flush()
        session.rollback()
        assert row not in session
        session.commit()
    assert stored() == []


@pytest.mark.parametrize("ending", ["close", "expunge_all", "expunge"])
def test_a_row_that_leaves_the_session_is_not_stored(factory: Factory, stored: Stored, ending: str) -> None:
    with factory() as session:
        row = session.enqueue(send_receipt, 1)
        getattr(session, ending)(*([row] if ending == "expunge" else []))
        session.commit()
    assert stored() == []


@pytest.mark.parametrize("autoflush", [True, False])
@pytest.mark.parametrize("expire", [True, False])
def test_autoflush_and_expire_on_commit_either_way(
    factory: Factory, stored: Stored, autoflush: bool, expire: bool
) -> None:
    factory.configure(autoflush=autoflush, expire_on_commit=expire)
    with factory() as session:
        row = session.enqueue(send_receipt, 1)
        with session.no_autoflush:
            session.scalars(select(Customer)).all()
        session.commit()
        assert [row.id] == stored()
        assert row.status is Status.NEW
        assert row.created_at.tzinfo is not None


def test_two_transactions_of_one_session(factory: Factory, stored: Stored, woken: list[str]) -> None:
    with factory() as session:
        first = session.enqueue(send_receipt, 1)
        session.commit()
        session.enqueue(send_receipt, 2)
        session.rollback()
        third = session.enqueue(send_receipt, 3)
        session.commit()
        assert stored() == [first.id, third.id]
    assert woken == ["mail", "mail"]


def test_a_timedelta_is_added_to_the_databases_clock_and_stored_as_scheduled(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        session.enqueue(send_receipt.using(run_after=dt.timedelta(hours=1)), 1)
    with factory() as session:
        row = session.scalars(select(Job)).one()
        assert row.status is Status.SCHEDULED
        assert abs(row.scheduled_at - row.created_at - dt.timedelta(hours=1)) < dt.timedelta(seconds=5)


def test_a_datetime_is_stored_as_the_same_instant(factory: Factory) -> None:
    moment = dt.datetime(2027, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45)))
    with factory.begin() as session:
        session.enqueue(send_receipt.using(run_after=moment), 1)
    with factory() as session:
        row = session.scalars(select(Job)).one()
        assert (row.status, row.scheduled_at) == (Status.SCHEDULED, moment)


def test_a_datetime_in_the_past_is_due_at_once(factory: Factory) -> None:
    with factory.begin() as session:
        session.enqueue(send_receipt.using(run_after=dt.datetime(2001, 1, 1, tzinfo=dt.UTC)), 1)
    with factory() as session:
        row = session.scalars(select(Job)).one()
        assert row.scheduled_at <= row.created_at


def test_headers_priority_attempts_and_id_arrive(factory: Factory) -> None:
    chosen = uuid.UUID("01a22e9f-6622-7709-85c8-c22bcdaf7015")
    bound = send_receipt.using(priority=-5, headers={"trace": "é😀"}, max_attempts=3, queue="slow", id=chosen)
    with factory.begin() as session:
        session.enqueue(bound, 1)
    with factory() as session:
        row = session.get_one(Job, chosen)
        assert (row.priority, row.max_attempts, row.queue) == (-5, 3, "slow")
        assert json.loads(row.headers or "") == {"trace": "é😀"}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda session: session.enqueue(send_receipt), InvalidArguments),
        (lambda session: session.enqueue(send_receipt, 1, nope=2), TypeError),
        (lambda session: session.enqueue(send_receipt, object()), BodyNotSerializable),
        (lambda session: session.enqueue(send_receipt.using(run_after=dt.datetime(2030, 1, 1)), 1), NaiveDatetime),  # noqa: DTZ001
    ],
)
def test_bad_input_is_refused_before_sql_and_the_session_goes_on(
    factory: Factory, stored: Stored, call: Callable[[Any], Any], error: type[Exception]
) -> None:
    with factory.begin() as session:
        with pytest.raises(error):
            call(session)
        good = session.enqueue(send_receipt, 1)
        assert list(session.new) == [good]
    assert len(stored()) == 1


def test_a_factory_is_no_session_and_a_call_of_a_handler_no_task(factory: Factory) -> None:
    with pytest.raises(InvalidSetting, match="an open Session"):
        enqueue(cast("Any", factory), send_receipt, 1)
    with factory.begin() as session, pytest.raises(InvalidSetting, match=r"@queue\.task"):
        session.enqueue(cast("Any", "send_receipt"), 1)


def test_the_id_of_a_new_order_is_refused_until_it_is_flushed(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        customer = Customer(name="Ada")
        session.add(customer)
        with pytest.raises(InvalidArguments, match="flush"):
            session.enqueue(send_receipt, customer.id)
        session.flush()
        session.enqueue(send_receipt, customer.id)
    assert len(stored()) == 1


def test_a_relation_of_the_users_own_is_stored(factory: Factory, stored: Stored) -> None:
    with factory.begin() as session:
        row = session.enqueue(send_receipt, 1)
        row.customer = Customer(name="Ada")
    assert stored("customer_id") != [None]


def test_the_free_function_serves_any_session(
    engine: Engine, jobs: type[Job], stored: Stored, woken: list[str]
) -> None:
    with Session(engine) as session, session.begin():
        row = enqueue(session, send_receipt, 1)
        with session.begin_nested() as savepoint:
            enqueue(session, send_receipt.using(queue="lost"), 2)
            savepoint.rollback()
        known = row.id
        assert woken == []
    assert stored() == [known]
    assert woken == ["mail"]


@pytest.mark.parametrize("name", ["before_flush", "after_flush", "after_flush_postexec", "before_commit"])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_task_enqueued_in_a_session_event_is_stored_with_the_commit(
    factory: Factory, stored: Stored, woken: list[str], name: str, key: str | None
) -> None:
    with factory() as session:
        tasks: list[Any] = []

        def listener(session: Any, *_: object) -> None:
            if not tasks:
                tasks.append(session.enqueue(send_receipt.using(unique_key=key), 1))

        event.listen(session, name, listener)
        session.add(Customer(name="Ada"))
        session.commit()
        assert stored() == [tasks[0].id]
    assert woken == ["mail"]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_task_enqueued_in_a_before_flush_without_other_work_is_stored(
    factory: Factory, stored: Stored, key: str | None
) -> None:
    """The user's listener comes after the library's own, and the flush then has nothing else to do."""
    with factory() as session:
        done: list[Any] = []

        @event.listens_for(session, "before_flush")
        def listener(session: Any, *_: object) -> None:
            if not done:
                done.append(session.enqueue(send_receipt.using(unique_key=key), 2))

        session.enqueue(send_receipt.using(unique_key="first"), 1)
        session.commit()
    assert len(stored()) == 2


def test_a_task_enqueued_in_after_commit_is_refused(factory: Factory, stored: Stored) -> None:
    """SQLAlchemy would keep it pending and lose it silently."""
    with factory() as session:
        refused: list[Exception] = []

        @event.listens_for(session, "after_commit")
        def listener(session: Any) -> None:
            with pytest.raises(TransactionEnded) as raised:
                session.enqueue(send_receipt, 1)
            refused.append(raised.value)

        session.add(Customer(name="Ada"))
        session.commit()
        assert len(refused) == 1
        assert stored() == []


def test_a_task_enqueued_in_a_savepoints_after_commit_is_stored_with_the_root(
    factory: Factory, stored: Stored, woken: list[str]
) -> None:
    with factory() as session:
        rows: list[Any] = []

        @event.listens_for(session, "after_commit")
        def listener(session: Any) -> None:
            if not rows:
                rows.append(session.enqueue(send_receipt, 1))

        with session.begin_nested():
            session.add(Customer(name="Ada"))
        assert woken == []
        session.commit()
    assert len(stored()) == 1
    assert woken == ["mail"]


def test_a_task_enqueued_after_a_rollback_belongs_to_the_next_transaction(factory: Factory, stored: Stored) -> None:
    with factory() as session:
        session.enqueue(send_receipt, 1)
        session.flush()
        session.rollback()
        row = session.enqueue(send_receipt, 2)
        session.commit()
        assert stored() == [row.id]


def test_a_failed_flush_leaves_nothing_behind(factory: Factory, stored: Stored, woken: list[str]) -> None:
    with factory() as session:
        session.enqueue(send_receipt, 1)
        session.add(Customer(name=None))
        with pytest.raises(Exception, match=r"(?i)null"):
            session.commit()
        with pytest.raises(TransactionEnded):
            session.enqueue(send_receipt, 2)
        session.rollback()
        row = session.enqueue(send_receipt, 3)
        session.commit()
        assert stored() == [row.id]
    assert woken == ["mail"]


def test_a_session_without_autobegin_says_so(engine: Engine, jobs: type[Job]) -> None:
    with TaskSession(engine, autobegin=False) as session, pytest.raises(NoTransaction, match="autobegin"):
        session.enqueue(send_receipt, 1)


def test_core_statements_beside_the_task_share_its_transaction(
    factory: Factory, stored: Stored, count: Callable[[type[Any]], int]
) -> None:
    """R25: a transaction with nothing but Core DML passes no flush event before the commit's own."""
    with factory() as session:
        session.execute(insert(Customer).values(name="Ada"))
        session.enqueue(send_receipt, 1)
        session.rollback()
        assert (len(stored()), count(Customer)) == (0, 0)
        session.execute(insert(Customer).values(name="Ada"))
        session.enqueue(send_receipt, 1)
        session.commit()
    assert (len(stored()), count(Customer)) == (1, 1)


@pytest.mark.every_driver
async def test_nothing_is_awaited_on_an_async_session(async_factory: Any, stored: Stored, woken: list[str]) -> None:
    async with async_factory() as session:
        row = session.enqueue(send_receipt.using(run_after=dt.timedelta(seconds=5)), 1)
        other = session.enqueue(send_receipt, 2)
        known = [row.id, other.id]
        await session.commit()
        session.enqueue(send_receipt, 3)
        await session.flush()
        await session.rollback()
    assert stored() == known
    assert woken == ["mail"]


@pytest.mark.every_driver
def test_every_sync_driver_stores_and_rolls_back(factory: Factory, stored: Stored) -> None:
    with factory() as session:
        session.enqueue(send_receipt, 1)
        session.flush()
        session.rollback()
        row = session.enqueue(send_receipt.using(run_after=dt.timedelta(seconds=5)), 2)
        session.commit()
        assert stored() == [row.id]


def test_nothing_is_kept_on_the_session_after_either_end(factory: Factory) -> None:
    with factory() as session:
        for ending in (session.commit, session.rollback, session.close):
            session.enqueue(send_receipt.using(unique_key=ending.__name__), 1)
            ending()
            assert session.info == {}


def test_sqlalchemy_still_tells_by_flushing_that_a_flush_runs(factory: Factory) -> None:
    """The library reads `Session._flushing`, which is private."""
    with factory() as session:
        seen: list[bool] = []
        event.listen(session, "before_flush", lambda session, *_: seen.append(session._flushing))
        session.add(Customer(name="Ada"))
        session.flush()
        assert (seen, session._flushing) == ([True], False)


def test_a_queue_over_a_base_is_refused_at_the_first_task(factory: Factory) -> None:
    task = TaskQueue(Base).task(name="send")(lambda: None)
    with factory() as session, pytest.raises(InvalidSetting, match="QueueMixin"):
        session.enqueue(task)


def test_the_repr_of_a_row_names_its_task_and_asks_no_database(factory: Factory, engine: Engine) -> None:
    with factory() as session:
        row = session.enqueue(send_receipt, 7)
        assert repr(row) == f"<Job {row.id} {send_receipt.name}>"
        session.flush()
        session.refresh(row)
        assert repr(row) == f"<Job {row.id} {send_receipt.name} NEW>"
        known = row.id
        session.commit()
        statements: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
        assert repr(row) == f"<Job {known}>"
        assert statements == []
