"""`publish`: a message is stored if and only if the transaction commits."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pytest
from sqlalchemy import Engine, event, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from sa_taskqueue import MessageStatus, TaskQueue, TaskSession, install, publish, publish_many
from sa_taskqueue.exceptions import (
    AutocommitEngine,
    BodyInvalid,
    BodyNotSerializable,
    BodyTooLarge,
    InvalidDelay,
    InvalidHeaders,
    InvalidMessage,
    InvalidSetting,
    MissingTable,
    NaiveDatetime,
    TransactionEnded,
    UnknownQueue,
)
from sa_taskqueue.store.notify import channel_of
from tests.outbox.models import Account, CapturedOutbox, Outbox, Task, bare, captured, queue

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]

NOTHING_KNOWN: dict[str, Any] = {"info": {}}


@dataclass
class Line:
    sku: str
    price: Decimal


def test_the_row_is_an_instance_of_the_users_model_and_its_id_is_known_at_once(
    factory: Factory, stored: Stored, woken: list[str]
) -> None:
    with factory.begin() as session:
        session.add(Account(id=1))
        row = session.publish("orders.completed", {"order_id": 7}, headers={"trace": "é😀"}, type="OrderCompleted")
        assert isinstance(row, Outbox)
        known = row.id
        row.tenant = "acme"
        assert woken == []
    assert stored("id", "topic", "type", "key", "tenant") == [
        (known, "orders.completed", "OrderCompleted", None, "acme")
    ]
    assert json.loads(stored("payload")[0]) == {"order_id": 7}
    assert json.loads(stored("headers")[0]) == {"trace": "é😀"}
    assert stored("status", "seq", "key_hash") == [(MessageStatus.NEW, None, None)]
    assert woken == ["ob_outbox"]


def test_nothing_is_sent_before_the_flush(factory: Factory, engine: Engine) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with factory() as session:
        session.publish("t", 1, key="k")
        assert statements == []


@pytest.mark.every_driver
@pytest.mark.parametrize("key", [None, "k"])
def test_what_is_rolled_back_is_neither_stored_nor_announced(
    factory: Factory, stored: Stored, woken: list[str], key: str | None
) -> None:
    with factory() as session:
        session.publish("lost", 1, key=key)
        session.flush()
        session.rollback()
        with session.begin_nested() as savepoint:
            session.publish("lost", 2, key=key)
            session.flush()
            savepoint.rollback()
        with session.begin_nested():
            session.publish("kept", 3, key=key)
            with session.begin_nested() as inner:
                session.publish_many([{"topic": "lost", "payload": 4, "key": key}])
                inner.rollback()
        session.publish("kept", 5, key=key)
        assert woken == []
        session.commit()
    assert stored("topic", "seq") == [("kept", 1 if key else None), ("kept", 2 if key else None)]
    assert woken == ["ob_outbox"]


@pytest.mark.every_driver
@pytest.mark.parametrize("key", [None, "k"])
async def test_an_async_session_has_nothing_to_await_but_many(
    async_factory: Any, stored: Stored, woken: list[str], key: str | None
) -> None:
    async with async_factory() as session:
        session.publish("lost", 1, key=key)
        await session.flush()
        await session.rollback()
        session.publish("kept", 2, key=key)
        savepoint = await session.begin_nested()
        await session.publish_many([{"topic": "lost", "payload": 3, "key": key}] * 2)
        await savepoint.rollback()
        await session.publish_many([{"topic": "kept", "payload": number, "key": key} for number in range(60)])
        await session.commit()
    assert stored("topic") == ["kept"] * 61
    assert stored("seq") == (list(range(1, 62)) if key else [None] * 61)
    assert woken == ["ob_outbox"]


PAYLOADS = [
    (None, None),
    (42, 42),
    ("text", "text"),
    ([1, "b"], [1, "b"]),
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00+00:00"),
    (uuid.UUID(int=1), str(uuid.UUID(int=1))),
    ({"line": Line("a", Decimal("1.50"))}, {"line": {"sku": "a", "price": "1.50"}}),
]


@pytest.mark.parametrize(("payload", "expected"), PAYLOADS)
def test_a_payload_is_any_value_that_a_task_could_take(
    factory: Factory, stored: Stored, payload: Any, expected: Any
) -> None:
    with factory.begin() as session:
        session.publish("t", payload)
        session.publish_many([{"topic": "t", "payload": payload}])
    assert [json.loads(each) for each in stored("payload")] == [expected] * 2


def test_structs_and_models_of_other_libraries(factory: Factory, stored: Stored) -> None:
    msgspec, pydantic = pytest.importorskip("msgspec"), pytest.importorskip("pydantic")
    struct = msgspec.defstruct("Struct", [("a", int)])
    model = pydantic.create_model("Model", b=(dt.date, ...))
    with factory.begin() as session:
        session.publish("t", [struct(1), model(b=dt.date(2026, 1, 2))])
    assert json.loads(stored("payload")[0]) == [{"a": 1}, {"b": "2026-01-02"}]


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"payload": object()}, BodyNotSerializable, "object is not JSON"),
    ({"payload": float("nan")}, BodyNotSerializable, "NaN"),
    ({"payload": "a\0b"}, BodyInvalid, "NUL"),
    ({"payload": ["\ud800"]}, BodyInvalid, "surrogate"),
    ({"payload": "x" * 300_000}, BodyTooLarge, "payload would take 300002 bytes"),
    ({"topic": ""}, InvalidMessage, "topic .*has 0 characters"),
    ({"topic": "x" * 256}, InvalidMessage, "1 to 255"),
    ({"topic": "a b"}, InvalidMessage, "space"),
    ({"topic": "a\nb"}, InvalidMessage, "printed"),
    ({"topic": None}, InvalidMessage, "must be a string"),
    ({"type": ""}, InvalidMessage, "type"),
    ({"key": ""}, InvalidMessage, "key .*has 0 characters"),
    ({"key": "x" * 1025}, InvalidMessage, "1 to 1024"),
    ({"key": "a\0"}, InvalidMessage, "NUL"),
    ({"key": 7}, InvalidMessage, "key .*type int"),
    ({"headers": {"a": 1}}, InvalidHeaders, "not a string"),
    ({"run_after": dt.datetime(2030, 1, 1)}, NaiveDatetime, "time zone"),  # noqa: DTZ001
    ({"run_after": dt.timedelta(seconds=-1)}, InvalidDelay, "delay"),
    ({"id": "x"}, InvalidSetting, "uuid"),
]


@pytest.mark.parametrize(("wrong", "error", "match"), REFUSED)
@pytest.mark.servers("sqlite")
def test_bad_input_is_refused_before_sql_and_the_session_goes_on(
    factory: Factory, stored: Stored, wrong: dict[str, Any], error: type[Exception], match: str
) -> None:
    fields = {"topic": "t", "payload": 1, **wrong}
    with factory.begin() as session:
        with pytest.raises(error, match=match):
            session.publish(**fields)
        with pytest.raises(error, match=match):
            session.publish_many([{"topic": "good", "payload": 1}, fields])
        assert not session.new
        session.publish("good", 1)
    assert stored("topic") == ["good"]


@pytest.mark.servers("sqlite")
def test_what_is_no_message_is_named(factory: Factory) -> None:
    with factory.begin() as session:
        with pytest.raises(InvalidMessage, match="must be a mapping"):
            session.publish_many(cast("Any", ["t"]))
        with pytest.raises(InvalidMessage, match=r"does not fit publish.*nope"):
            session.publish_many([{"topic": "t", "payload": 1, "nope": 2}])
        with pytest.raises(InvalidSetting, match="a TaskQueue"):
            publish(session, cast("Any", "orders"), "t", 1)
        with pytest.raises(MissingTable, match="OutboxMixin"):
            publish(session, bare, "t", 1)
        with pytest.raises(MissingTable, match=r"ordered=False\) needs .* OutboxKeyMixin"):
            publish(session, TaskQueue(Task, outbox=Outbox), "t", 1, key="k")
        publish(session, TaskQueue(Task, outbox=Outbox), "t", 1, key="k", ordered=False)


@pytest.mark.parametrize("many", [True, False])
def test_a_message_for_later_is_scheduled_by_the_databases_clock(factory: Factory, many: bool) -> None:
    moment = dt.datetime(2027, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45)))
    delays = [None, dt.timedelta(hours=1), moment]
    fields: list[Any] = [{"topic": "t", "payload": 1, "key": "k", "run_after": delay} for delay in delays]
    with factory.begin() as session:
        if many:
            session.publish_many(fields)
        else:
            for each in fields:
                session.publish(**each)
    with factory() as session:
        now, later, then = session.scalars(select(Outbox).order_by(Outbox.id))
        assert (now.status, now.seq) == (MessageStatus.QUEUED, 1)
        assert (later.status, later.seq) == (MessageStatus.SCHEDULED, None)
        assert abs(later.scheduled_at - later.created_at - dt.timedelta(hours=1)) < dt.timedelta(seconds=5)
        assert (then.status, then.seq, then.scheduled_at) == (MessageStatus.SCHEDULED, None, moment)


@pytest.mark.parametrize("name", ["before_flush", "after_flush", "after_flush_postexec", "before_commit"])
def test_a_message_published_in_a_session_event_is_stored_with_the_commit(
    factory: Factory, stored: Stored, woken: list[str], name: str
) -> None:
    with factory() as session:
        published: list[Any] = []

        def publish_once(*_: Any) -> None:
            if not published:
                published.append(session.publish("t", 1))

        event.listen(session, name, publish_once)
        session.add(Account(id=1))
        session.commit()
        assert stored() == [published[0].id]
    assert woken == ["ob_outbox"]


def test_after_the_commit_it_is_too_late(factory: Factory, stored: Stored) -> None:
    with factory() as session:
        event.listen(session, "after_commit", lambda session: session.publish("t", 1))
        session.add(Account(id=1))
        with pytest.raises(TransactionEnded):
            session.commit()
    assert stored() == []


@pytest.mark.servers("postgresql", "mysql")
def test_an_engine_that_commits_each_statement_is_refused(engine: Engine, tables: None, stored: Stored) -> None:
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    uses: list[Callable[[Any], Any]] = [
        lambda session: (session.publish("t", 1), session.flush()),
        lambda session: session.publish_many([{"topic": "t", "payload": 1}]),
        lambda session: session.first_time("m"),
    ]
    for use in uses:
        factory = sessionmaker(autocommit, class_=TaskSession, info={"task_queue": queue})
        with factory() as session, pytest.raises(AutocommitEngine):
            use(session)
    assert stored() == []


def test_debeziums_outbox_is_written_in_the_same_way_and_never_changed(
    engine: Engine, tables: None, plain_engine: Engine
) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with sessionmaker(engine, class_=TaskSession, info={"task_queue": captured}).begin() as session:
        session.publish("order", {"id": 1}, key="7", type="OrderCompleted")
        session.publish_many([{"topic": "order", "payload": 2}])
        with pytest.raises(InvalidSetting, match="Debezium"):
            session.publish("order", 3, run_after=dt.timedelta(1))
    with Session(plain_engine) as session:
        first, second = session.scalars(select(CapturedOutbox).order_by(CapturedOutbox.id))
    assert (first.aggregatetype, first.aggregateid, first.type) == ("order", "7", "OrderCompleted")
    assert json.loads(first.payload) == {"id": 1}
    assert (second.aggregatetype, second.aggregateid, second.type) == ("order", None, "order")
    assert not any(statement.startswith("UPDATE") for statement in statements)


@pytest.mark.servers("sqlite")
def test_a_session_knows_its_queue_by_its_factory(engine: Engine, tables: None, stored: Stored) -> None:
    installed = install(sessionmaker(engine), queue=queue)
    with installed.begin() as session:
        session.publish("a", 1)  # type: ignore[attr-defined]
        session.publish_many([{"topic": "b", "payload": 1}])  # type: ignore[attr-defined]
    registry: Any = install(scoped_session(sessionmaker(engine)), queue=queue)
    registry.publish("c", 1)
    registry.commit()
    registry.remove()
    with Session(engine) as session, session.begin():
        publish(session, queue, "d", 1)
        publish_many(session, queue, [queue.message("e", 1)])
    assert sorted(stored("topic")) == ["a", "b", "c", "d", "e"]
    assert not hasattr(Session, "publish")


async def test_an_installed_async_factory(async_engine: Any, tables: None, stored: Stored) -> None:
    from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

    installed: Any = install(async_sessionmaker(async_engine), queue=queue)
    async with installed.begin() as session:
        session.publish("a", 1, key="k")
    async with AsyncSession(async_engine) as session, session.begin():
        publish(session, queue, "b", 1, key="k")
        await publish_many(session, queue, [queue.message("c", 1, key="k")])
    assert stored("topic", "seq") == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.servers("sqlite")
def test_with_several_outboxes_the_session_must_be_told(engine: Engine, tables: None) -> None:
    with sessionmaker(engine, class_=TaskSession).begin() as session:
        with pytest.raises(UnknownQueue, match=r"there are several .*install\(Session, queue=queue\)"):
            session.publish("t", 1)
        session.info["task_queue"] = "orders"
        with pytest.raises(InvalidSetting, match="a TaskQueue"):
            session.publish("t", 1)
    with pytest.raises(InvalidSetting, match="a TaskQueue"):
        install(sessionmaker(engine), queue=cast("Any", "orders"))


@pytest.mark.servers("postgresql")
def test_with_notify_the_relay_is_told_by_the_database(
    factory: Factory, plain_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "notify", True)
    with plain_engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        driver: Any = connection.connection.driver_connection
        connection.exec_driver_sql(f'LISTEN "{channel_of(queue.outbox_table)}"')
        with factory() as session:
            session.publish("t", 1, key="k")
            session.rollback()
            session.publish("t", 1, key="k")
            session.publish_many([{"topic": "t", "payload": 2}])
            session.commit()
        assert [each.payload for each in driver.notifies(timeout=30.0, stop_after=1)] == ["messages"]
