"""What goes in comes out, on every database."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, Table, create_engine, insert, select, text, type_coerce, update
from sqlalchemy.exc import StatementError

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import NaiveDatetime
from sa_taskqueue.ids import new_id
from sa_taskqueue.models.types import KeyHash, UtcDateTime
from sa_taskqueue.states import Status

pytestmark = pytest.mark.every_driver

TOKYO = dt.timezone(dt.timedelta(hours=9))


@pytest.fixture
def connection(engine: Engine, tasks: Table) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection


def store(connection: Connection, tasks: Table, **values: object) -> uuid.UUID:
    row = {"id": new_id(), "name": "mail", "body": "{}", **values}
    connection.execute(insert(tasks).values(row))
    return row["id"]


def read(connection: Connection, tasks: Table, column: str, task_id: uuid.UUID) -> object:
    return connection.scalar(select(tasks.c[column]).where(tasks.c.id == task_id))


@pytest.mark.parametrize(
    "moment",
    [
        dt.datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=TOKYO),
        dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.UTC),
        dt.datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        dt.datetime(1000, 1, 1, tzinfo=dt.UTC),
    ],
)
def test_moments_keep_their_microseconds_and_come_back_as_utc(
    connection: Connection, tasks: Table, moment: dt.datetime
) -> None:
    task_id = store(connection, tasks, scheduled_at=moment)
    found = read(connection, tasks, "scheduled_at", task_id)
    assert found == moment
    assert isinstance(found, dt.datetime)
    assert found.tzinfo is dt.UTC


def test_text_order_is_time_order(connection: Connection, tasks: Table) -> None:
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    moments = [start + dt.timedelta(microseconds=step) for step in (0, 1, 10, 999_999, 1_000_000)]
    for moment in reversed(moments):
        store(connection, tasks, scheduled_at=moment)
    column = tasks.c.scheduled_at
    assert list(connection.scalars(select(column).order_by(column))) == moments
    assert list(connection.scalars(select(column).where(column > moments[2]).order_by(column))) == moments[3:]


def test_naive_datetimes_are_refused_by_name(connection: Connection, tasks: Table) -> None:
    with pytest.raises(StatementError) as caught:
        store(connection, tasks, scheduled_at=dt.datetime(2024, 1, 1))  # noqa: DTZ001
    assert isinstance(caught.value.orig, NaiveDatetime)


def test_the_clock_columns_are_the_databases_clock(connection: Connection, tasks: Table) -> None:
    clock = select(type_coerce(adapter_for(connection.dialect).clock(), UtcDateTime))
    before = connection.scalar(clock)
    task_id = store(connection, tasks)
    after = connection.scalar(clock)
    assert before is not None
    assert after is not None
    for column in ("created_at", "ready_at", "scheduled_at"):
        found = read(connection, tasks, column, task_id)
        assert isinstance(found, dt.datetime)
        assert before <= found <= after


def test_a_producer_in_another_language_needs_id_name_and_body_only(connection: Connection, tasks: Table) -> None:
    task_id = store(connection, tasks)
    [row] = connection.execute(select(tasks).where(tasks.c.id == task_id)).mappings()
    expected = {"queue": "default", "priority": 0, "status": Status.NEW, "attempt": 0, "crashes": 0, "epoch": 0}
    assert {key: row[key] for key in expected} == expected
    assert row["max_attempts"] == 10


@pytest.mark.parametrize(
    "value",
    [
        {"text": "ä😀\u2028 \\ \" ' % %s :x \n \t"},
        {"nested": [1, 2.5, None, True, {"deep": ["x"]}]},
        {"big": 2**53 - 1, "empty": "", "list": []},
    ],
)
def test_json_is_encoded_once_whatever_the_engines_serializer_does(
    engine: Engine, tasks: Table, value: dict[str, object]
) -> None:
    spoiled = create_engine(engine.url, json_serializer=lambda _: "[]", json_deserializer=lambda _: "spoiled")
    body = json.dumps(value)
    with spoiled.begin() as connection:
        task_id = store(connection, tasks, body=body, headers=body)
        found = connection.execute(select(tasks.c.body, tasks.c.headers).where(tasks.c.id == task_id)).one()
        assert [json.loads(text) for text in found] == [value, value]
        connection.execute(update(tasks).where(tasks.c.id == task_id).values(result=body))
        assert json.loads(str(read(connection, tasks, "result", task_id))) == value
    spoiled.dispose()


@given(st.binary(min_size=32, max_size=32))
def test_hashes_are_bytes(value: bytes) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        assert connection.scalar(select(type_coerce(value, KeyHash))) == value
    engine.dispose()


def test_hashes_compare_byte_by_byte(connection: Connection, tasks: Table) -> None:
    hashes = [bytes([byte]) + b"\x00" * 31 for byte in (0, 0x61, 0x41, 0xFF)]
    ids = [store(connection, tasks, unique_hash=value) for value in hashes]
    for task_id, value in zip(ids, hashes, strict=True):
        assert read(connection, tasks, "unique_hash", task_id) == value
        assert list(connection.scalars(select(tasks.c.id).where(tasks.c.unique_hash == value))) == [task_id]


def test_ids_sort_as_their_text_does(connection: Connection, tasks: Table) -> None:
    ids = [uuid.UUID(int=value << 96 | value) for value in (1, 255, 256, 2**31, 2**32 - 1)]
    for task_id in reversed(ids):
        store(connection, tasks, id=task_id)
    assert list(connection.scalars(select(tasks.c.id).order_by(tasks.c.id))) == ids


def test_names_are_compared_as_they_are_written(connection: Connection, tasks: Table) -> None:
    for name in ("mail", "Mail", "máil"):
        store(connection, tasks, queue=name)
    assert len(list(connection.scalars(select(tasks.c.id).where(tasks.c.queue == "mail")))) == 1


def test_statuses_are_members_and_unknown_ones_are_read_as_they_stand(connection: Connection, tasks: Table) -> None:
    known = store(connection, tasks, status=Status.CANCELLED)
    unknown = store(connection, tasks, status="PAUSED")
    assert read(connection, tasks, "status", known) is Status.CANCELLED
    assert read(connection, tasks, "status", unknown) == "PAUSED"


@pytest.mark.servers("postgresql", "postgresql18")
def test_a_column_takes_an_interval_as_it_would_without_the_type(connection: Connection, tasks: Table) -> None:
    task_id = store(connection, tasks, scheduled_at=dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    later = select(tasks.c.scheduled_at + dt.timedelta(hours=1)).where(tasks.c.id == task_id)
    assert connection.scalar(later) == dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC)


def test_the_database_holds_utc_whatever_the_sessions_time_zone_is(connection: Connection, tasks: Table) -> None:
    zones = {"postgresql": "SET TIME ZONE 'Asia/Tokyo'", "mysql": "SET time_zone = '+09:00'"}
    zones["mariadb"] = zones["mysql"]
    if connection.dialect.name in zones:
        connection.execute(text(zones[connection.dialect.name]))
    moment = dt.datetime(2024, 6, 1, 3, 4, 5, 6, tzinfo=dt.UTC)
    task_id = store(connection, tasks, scheduled_at=moment)
    assert read(connection, tasks, "scheduled_at", task_id) == moment
    created = read(connection, tasks, "created_at", task_id)
    assert isinstance(created, dt.datetime)
    assert abs(created - dt.datetime.now(dt.UTC)) < dt.timedelta(hours=1)
