"""Publishing and receiving inside handlers, over several databases, on databases that no test runs on; drift."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue import TaskContext, TaskQueue, TaskSession, Worker, sqlite_engine
from sa_taskqueue.control import Control
from sa_taskqueue.exceptions import IndexMissing, SchemaMissing, SchemaOutdated
from sa_taskqueue.store.inbox import first_time
from sa_taskqueue.store.sequences import assign
from tests.adapters.recorder import Driver
from tests.adapters.scenario import recorder
from tests.outbox.models import Account, Base, Inbox, Outbox, OutboxKey, Task

OUTBOX: Any = Outbox.__table__
OUTBOX_KEYS: Any = OutboxKey.__table__
INBOX: Any = Inbox.__table__


@pytest.fixture
def shop() -> TaskQueue:
    """A queue of its own, so that handlers of two tests do not meet."""
    return TaskQueue(Task, outbox=Outbox, outbox_keys=OutboxKey, inbox=Inbox)


def test_a_handlers_messages_are_part_of_its_commit(
    engine: Engine, tables: None, plain_engine: Engine, shop: TaskQueue
) -> None:
    """Its session knows the queue of its task; a handler that fails has published nothing, and received nothing."""

    @shop.task(max_attempts=1)
    def work(context: TaskContext, fail: bool) -> None:
        session: Any = context.session
        assert session.first_time("m")
        session.publish("t", 1, key="k")
        session.commit()  # moves a savepoint only
        session.publish("t", 2, key="k")
        if fail:
            raise ValueError("no")

    with sessionmaker(engine, class_=TaskSession).begin() as session:
        session.enqueue(work, True)
    Worker(shop, engine, drain=True).run()
    with sessionmaker(engine, class_=TaskSession).begin() as session:
        session.enqueue(work, False)
    Worker(shop, engine, drain=True).run()
    with Session(plain_engine) as session:
        assert session.execute(select(Outbox.payload, Outbox.seq).order_by(Outbox.seq)).all() == [("1", 1), ("2", 2)]
        assert session.scalar(select(func.count()).select_from(Inbox)) == 1


async def test_an_async_handlers_too(async_engine: Any, tables: None, plain_engine: Engine, shop: TaskQueue) -> None:
    from sa_taskqueue import AsyncTaskSession

    @shop.task
    async def work(context: TaskContext) -> None:
        session: Any = context.async_session
        if await session.first_time("m", key="k", seq=1):
            session.publish("t", 1, key="k")

    async with AsyncTaskSession(async_engine) as session, session.begin():
        session.enqueue(work)
        session.enqueue(work)
    async with asyncio.timeout(120):
        await Worker(shop, async_engine, drain=True).serve()
    with Session(plain_engine) as plain:
        assert plain.scalars(select(Outbox.seq)).all() == [1]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[dict[str, Engine]]:
    made = {name: sqlite_engine(f"sqlite:///{tmp_path / name}.db") for name in ("tasks", "messages")}
    for engine in made.values():
        Base.metadata.create_all(engine)
    yield made
    for engine in made.values():
        engine.dispose()


@pytest.mark.parametrize("mode", ["commit", "rollback"])
def test_messages_go_to_the_database_that_their_model_is_bound_to(
    two: dict[str, Engine], shop: TaskQueue, mode: str
) -> None:
    binds: dict[Any, Engine] = dict.fromkeys((Outbox, OutboxKey, Account, Inbox), two["messages"])
    factory = sessionmaker(two["tasks"], class_=TaskSession, binds=binds, info={"task_queue": shop})
    with factory() as session:
        session.add(Account(id=1))
        session.publish("t", 1, key="k")
        session.publish_many([{"topic": "t", "payload": 2, "key": "k"}])
        session.first_time("m")
        getattr(session, mode)()
    expected = {"commit": ([1, 2], 1), "rollback": ([], 0)}[mode]
    with Session(two["messages"]) as session:
        found = session.scalars(select(Outbox.seq).order_by(Outbox.seq)).all()
        assert (list(found), session.scalar(select(func.count()).select_from(Inbox))) == expected
    with Session(two["tasks"]) as session:
        assert session.scalars(select(Outbox.id)).all() == []


CHANGES = [
    ("DROP TABLE ob_inbox", SchemaMissing, "ob_inbox"),
    ("DROP TABLE ob_outbox_key", SchemaMissing, "ob_outbox_key"),
    ("ALTER TABLE ob_outbox DROP COLUMN headers", SchemaOutdated, "ob_outbox has no column headers"),
    ("DROP INDEX ix_ob_outbox_sequence", IndexMissing, "ix_ob_outbox_sequence"),
    ("DROP INDEX ix_ob_outbox_key_claim", IndexMissing, "ix_ob_outbox_key_claim"),
]


@pytest.mark.parametrize(("change", "error", "match"), CHANGES)
async def test_check_names_what_is_missing_of_each_table(
    two: dict[str, Engine], shop: TaskQueue, change: str, error: type[Exception], match: str
) -> None:
    with two["tasks"].begin() as connection:
        connection.exec_driver_sql(change)
    async with Control(shop, two["tasks"]) as control:
        with pytest.raises(error, match=match):
            await control.check()


@pytest.mark.parametrize("missing", ["ob_outbox", "ob_outbox_key", "ob_inbox"])
def test_a_table_that_was_not_created_is_named_where_it_is_first_used(
    two: dict[str, Engine], shop: TaskQueue, missing: str
) -> None:
    with two["tasks"].begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {missing}")
    factory = sessionmaker(two["tasks"], class_=TaskSession, info={"task_queue": shop})

    def use() -> None:
        with factory.begin() as session:
            session.first_time("m")
            session.publish("t", 1, key="k")

    with pytest.raises(SchemaMissing, match=rf"table {missing} does not exist"):
        use()


@pytest.mark.parametrize("server", ["oracle", "mssql"])
def test_without_an_upsert_a_missing_key_is_made_in_a_savepoint_and_locked_by_its_change(server: str) -> None:
    recording = recorder(server)
    usual = recording.value_of
    values = {"key": "k", "seq": 4, "next_seq": 6, "key_hash": b"k" * 16, "id": b"k" * 16}
    recording.value_of = lambda name: values.get(name) or usual(name)
    with recording.engine.begin() as connection:
        assign(connection, OUTBOX, OUTBOX_KEYS, [uuid.UUID(bytes=b"k" * 16)])
    sent = recording.statements()
    locks = [sql.split(" SET ")[0] for sql in sent if sql.startswith("UPDATE")]
    assert locks == ["UPDATE ob_outbox_key", "UPDATE ob_outbox"]
    assert not any("ON CONFLICT" in sql or "ON DUPLICATE" in sql for sql in sent)


@pytest.mark.parametrize("server", ["oracle", "mssql"])
def test_without_a_conflict_clause_a_duplicate_is_undone_by_a_savepoint(server: str) -> None:
    recording = recorder(server)

    def refuse(sql: str) -> None:
        if sql.startswith("INSERT"):
            raise (
                Driver.IntegrityError(2627, b"Violation of PRIMARY KEY constraint.")
                if server == "mssql"
                else Driver.IntegrityError("ORA-00001: unique constraint (APP.PK) violated")
            )

    recording.refuse = refuse
    with recording.engine.begin() as connection:
        assert first_time(connection, INBOX, "/s", "m") is False
    assert any("SAVE" in sql.upper() for sql in recording.statements())
