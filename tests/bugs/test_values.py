"""Values, names and texts arrive as they were sent, on every database, or are refused before they are sent."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import socket
import time
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine, MetaData, create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.schema import CreateSchema, DropSchema

from sa_taskqueue import ids as id_module
from sa_taskqueue.cli.base import table as printed
from sa_taskqueue.context import TaskContext
from sa_taskqueue.control import Choice, Control
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.ids import new_id
from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.retry import never
from sa_taskqueue.runtime.holder import holder_name
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.checks.source import PACKAGE
from tests.models import Task
from tests.worker.support import Database, drain

PLAIN: list[Any] = [
    2**63 - 1,
    -(2**63),
    2**70,
    0.1 + 0.2,
    1.0,
    -1.5e-300,
    9007199254740992.5,
    5e-324,
    True,
    None,
    "",
    " padded ",
    "😀 é é \N{RIGHT-TO-LEFT OVERRIDE}rtl '\"\\ %s %(x)s :name ?",
    "line\nbreak\ttab\r\x01",
    [],
    {},
    [[], {"": None}],
    {"b": 1, "a": {"z": 1, "y": 2}, "10": 3, "9": 4},
    "\N{MUSICAL SYMBOL G CLEF}" * 1000,
]


def test_plain_values_arrive_with_their_type_whatever_the_column_is(
    engine: Engine, db: Database, queue: TaskQueue
) -> None:
    """contribsys/faktory#395, sidekiq/sidekiq#2478: numbers must not become doubles, nor doubles whole numbers."""
    arrived: dict[int, Any] = {}

    @queue.task
    def work(n: int, value: Any) -> None:
        arrived[n] = value

    with TaskSession(db.engine) as session, session.begin():
        for n, value in enumerate(PLAIN):
            session.enqueue(work, n, value)
    drain(Worker(queue, engine, drain=True))
    assert {n: (type(value), value) for n, value in arrived.items()} == {
        n: (type(value), value) for n, value in enumerate(PLAIN)
    }


def test_numbers_annotated_as_float_arrive_as_floats(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """riverqueue/river#777: jsonb stores 1e22 as a whole number, and another language may send 3 for 3.0."""
    arrived: list[float] = []

    @queue.task
    def work(value: float) -> None:
        arrived.append(value)

    with TaskSession(db.engine) as session, session.begin():
        for value in (1e22, 3.0, -0.0, 1e300):
            session.enqueue(work, value)
    with db.engine.begin() as connection:
        connection.execute(insert(db.table), [{"id": new_id(), "name": "work", "body": '{"value": 3}'}])
    drain(Worker(queue, engine, drain=True, queues={"default": 1}))
    assert sorted(arrived) == [0.0, 3.0, 3.0, 1e22, 1e300]
    assert {type(value) for value in arrived} == {float}


def test_errors_and_headers_of_any_script_are_kept(engine: Engine, db: Database, queue: TaskQueue) -> None:
    """gruelbox/transaction-outbox#859: emoji and right-to-left text in whatever the library stores."""
    message = "😀 \N{RIGHT-TO-LEFT OVERRIDE}שלום é\u2019 \N{COMBINING ACUTE ACCENT}"

    @queue.task(retry=never, store_result=True)
    def work(context: TaskContext, n: int) -> str:
        if n:
            raise ValueError(message)
        assert json.loads(context.task.headers or "{}") == {"who\u2019s": message}
        return message

    bound = work.using(headers={"who\u2019s": message}, unique_key=message)
    ids = [db.put(bound, 0), db.put(work, 1)]
    drain(Worker(queue, engine, drain=True, name="Zoë\u2019s 🖥"))
    done, failed = db.rows(ids)
    assert (done.status, json.loads(done.result), done.unique_key) == (Status.COMPLETED, message, message)
    assert json.loads(failed.error)["message"] == message


@pytest.mark.parametrize("host", ["zoë\u2019s-mac", "b\udcfcro", "nul\0" + "x" * 300])
def test_a_host_of_any_name_can_run_a_worker(
    engine: Engine, db: Database, queue: TaskQueue, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rails/solid_queue 3413d29: the host's name is bytes, and the worker's name is a text column."""
    monkeypatch.setattr(socket, "gethostname", lambda: host)

    @queue.task
    def work() -> None: ...

    db.put(work)
    drain(Worker(queue, engine, drain=True))
    assert db.statuses() == {Status.COMPLETED: 1}
    assert len(holder_name()) <= 200


@pytest.mark.parametrize("name", ["x" * 201, "a\0b", "\ud800"])
def test_a_worker_name_no_database_can_store_is_refused(name: str) -> None:
    """rails/solid_queue 3413d29: refused where it is given, not at each claim."""
    with pytest.raises(InvalidSetting, match="name"):
        Worker(TaskQueue(Task), create_engine("sqlite://"), name=name)


# SQLAlchemy 2.0 takes %(x)s in a table's name for a parameter where the driver counts question marks.
PERCENT = "100% :y ?" if sqlalchemy.__version__.startswith("2.0.") else "100% %(x)s :y ?"
ODD_NAMES = ["order", 'Über `tick` "task"', "x; drop table orders; --", PERCENT]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_tables_of_any_name_serve_from_enqueue_to_prune(engine: Engine, db: Database, name: str) -> None:
    """timgit/pg-boss#859, riverqueue/river#952: names are quoted by the dialect wherever they are used."""

    class Base(DeclarativeBase):
        metadata = MetaData()

    class Odd(QueueMixin, Base):
        __tablename__ = name

    queue = TaskQueue(Odd, notify=True)

    @queue.task
    def work(n: int) -> None:
        if n == 1:
            raise ValueError("once")

    Base.metadata.create_all(db.engine)
    try:
        with TaskSession(db.engine) as session, session.begin():
            session.enqueue(work, 0)
            session.enqueue(work.using(unique_key="k"), 2)
            session.enqueue(work.using(unique_key="k", on_duplicate="replace"), 3)
            session.enqueue(work.using(run_after=dt.timedelta(microseconds=1)), 4)
            session.enqueue_many(work, [{"n": n} for n in range(100, 200)])
        drain(Worker(queue, engine, drain=True))
        _operate(queue, engine)
        with Session(db.engine) as session:
            assert session.query(Odd).count() == 0
    finally:
        Base.metadata.drop_all(db.engine)


def _operate(queue: TaskQueue, engine: Engine) -> None:
    async def operate() -> None:
        async with Control(queue, engine) as control:
            await control.check()
            [statistics] = await control.statistics()
            assert statistics.counts == {Status.COMPLETED: 103}
            assert await control.cancel(Choice(name="work")) == []
            assert await control.prune(older_than=dt.timedelta(0)) == 103

    asyncio.run(operate())


@pytest.mark.servers("postgresql")
def test_a_schema_of_any_name_serves(engine: Engine, db: Database) -> None:
    """timgit/pg-boss#859: schema names with dashes, capitals, quotes and percent signs."""
    schema = 'My-Schema "x" 5%'

    class Base(DeclarativeBase):
        metadata = MetaData(schema=schema)

    class Odd(QueueMixin, Base):
        __tablename__ = "select"

    queue = TaskQueue(Odd, notify=True)

    @queue.task
    def work(n: int) -> None: ...

    with db.engine.begin() as connection:
        connection.execute(DropSchema(schema, cascade=True, if_exists=True))
        connection.execute(CreateSchema(schema))
    Base.metadata.create_all(db.engine)
    with TaskSession(db.engine) as session, session.begin():
        session.enqueue(work, 1)
        session.enqueue_many(work, [{"n": n} for n in range(100)])
    worker = drain(Worker(queue, engine, drain=True))
    assert worker.counts.completed == 101
    with db.engine.begin() as connection:
        connection.execute(DropSchema(schema, cascade=True))


def test_what_a_terminal_would_obey_is_printed_as_text() -> None:
    """Parallels/rq-dashboard#526: an error's text or a name in a row must not move the cursor or retitle the window."""
    shown = printed(["error"], [["\x1b[31mred\x1b]0;title\x07"], ["a\x9bb\r\u202e"], ["plain é 😀"]])
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "plain é 😀" in shown
    assert "red" in shown


@pytest.mark.servers("sqlite", "postgresql", "mysql")
def test_the_clock_of_a_client_decides_nothing(
    engine: Engine, db: Database, queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kagkarlsson/db-scheduler#433, #364: hosts ten minutes ahead or behind start nothing early."""

    @queue.task
    def work(n: int) -> None: ...

    monkeypatch.setattr(id_module, "_generator", id_module._Generator())  # else ids stay ten minutes ahead
    time_ns = time.time_ns
    for minutes in (10, -10):
        monkeypatch.setattr(time, "time_ns", lambda ahead=minutes: time_ns() + ahead * 60_000_000_000)
        early, due = db.put(work.using(run_after=dt.timedelta(minutes=5)), 1), db.put(work, 2)
        held = db.put(work, 0)
        with db.engine.begin() as connection:
            lease = connection.scalar(select(db.table.c.scheduled_at).where(db.table.c.id == early))
            values = {"status": Status.RUNNING, "epoch": 1, "attempt": 1, "reserved_until": lease}
            connection.execute(db.table.update().where(db.table.c.id == held).values(values))
        drain(Worker(queue, engine, drain=True))
        statuses = [row.status for row in db.rows([early, due, held])]
        assert statuses == [Status.SCHEDULED, Status.COMPLETED, Status.RUNNING]


def test_only_ids_and_notes_for_people_read_the_wall_clock() -> None:
    """quartznet/quartznet#435: every moment that decides something is the database's."""
    readers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("time.time(", "time_ns(", ".now(dt", "utcnow"))
    }
    # The signature of a webhook holds its sender's clock, and a Retry-After may be a moment instead of seconds.
    assert readers <= {"ids.py", "runtime/errors.py", "publishers/webhook.py"}
