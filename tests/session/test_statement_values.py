"""A task made by SQL from a row gives its handler the same arguments as one that Python has made from it."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.codec import decode_json
from sa_taskqueue.session import TaskSession
from tests.session.models import Job
from tests.session.statement_models import Color, Level, Sample, take_all

Factory = sessionmaker[TaskSession]

NAMES = [column.key for column in Sample.__table__.columns if column.key != "id"]

EDGES: dict[str, list[Any]] = {
    "text": ["", 'quote " back \\ slash / \n\r\t\x01\x1f\x7f', "\u2028 é 😀 %s %(x)s :name '", "null", "x" * 70_000],
    "number": [0, -1, 2**63 - 1, -(2**63), 2**53 + 1],
    "real": [0.0, 1.0, -0.1, 0.1 + 0.2, 1e22, 1.7e308, 2.3e-308, math.pi, 123456789.123456789],
    "amount": [Decimal("0.0000"), Decimal("-1.5000"), Decimal("99999999.9999"), Decimal("0.0001")],
    "flag": [True, False],
    "moment": [
        dt.datetime(2026, 12, 1, tzinfo=dt.UTC),
        dt.datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=dt.UTC),
        dt.datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    ],
    "day": [dt.date(2026, 2, 28), dt.date(1000, 1, 1), dt.date(8999, 12, 31)],
    "key": [uuid.UUID(int=0), uuid.UUID("12345678-9ABC-4EF0-9234-56789abcdef0")],
    "short_key": [uuid.UUID(int=1), uuid.UUID("12345678-9ABC-4EF0-9234-56789abcdef0")],
    "data": [b"", b"a", b"ab", b"abc", bytes(range(256)), b"\0" * 100],
    "color": list(Color),
    "level": [1, 2],
    "document": [{}, [], {"a": [1, 2.5, None, True, 'ü"']}, "text", 7, [[[]]]],
}

_text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60)
_SPAN = (dt.datetime(1001, 1, 1), dt.datetime(8999, 1, 1))  # noqa: DTZ001 - hypothesis adds the zone
_moments = st.datetimes(*_SPAN, timezones=st.just(dt.UTC))
_reals = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)

RANDOM: dict[str, st.SearchStrategy[Any]] = {
    "text": _text,
    "number": st.integers(-(2**63), 2**63 - 1),
    "real": _reals,
    "amount": st.decimals(Decimal(-99999999), Decimal(99999999), places=4),
    "flag": st.booleans(),
    "moment": _moments,
    "day": st.dates(dt.date(1000, 1, 1), dt.date(8999, 12, 31)),
    "key": st.uuids(version=4),  # MariaDB refuses others
    "short_key": st.uuids(),
    "data": st.binary(max_size=100),
    "color": st.sampled_from(Color),
    "level": st.sampled_from([1, 2]),
    "document": st.dictionaries(_text, st.integers(-(2**31), 2**31) | st.booleans() | _text, max_size=3),
}


def both(session: TaskSession, values: dict[str, Any]) -> None:
    """Store the row, enqueue from it in both ways, and compare what the handler would get."""
    sample = Sample(**values)
    session.add(sample)
    session.flush()
    session.expire(sample)
    by_python = session.enqueue(take_all, **{name: getattr(sample, name) for name in NAMES})
    columns = {name: getattr(Sample, name) for name in NAMES}
    statement = update(Sample).where(Sample.id == sample.id).values(level=Sample.level)
    assert session.enqueue_from(statement, take_all, **columns) == 1
    bodies = {row.id: row.body for row in session.execute(select(Job.id, Job.body))}
    expected = bodies.pop(by_python.id)
    (made,) = bodies.values()
    arguments = take_all.decode(made)[1]
    assert arguments == take_all.decode(expected)[1]
    types = {name: type(value) for name, value in arguments.items()}
    assert types == {name: type(value) for name, value in take_all.decode(expected)[1].items()}
    if arguments["level"] is not None:
        assert arguments["level"] in Level
    _same_json(decode_json(made), decode_json(expected))


def _same_json(made: dict[str, Any], expected: dict[str, Any]) -> None:
    """Handlers without annotations see the JSON itself."""
    for name in NAMES:
        if name in ("moment", "amount"):  # the same moment at +00:00; as many zeros as the column has
            continue
        if name == "real":  # JSONB and MySQL write 1.0 as 1, and PostgreSQL 6.7e16 with zeros
            assert made[name] is expected[name] is None or float(made[name]) == float(expected[name])
            continue
        assert json.dumps(made[name], sort_keys=True) == json.dumps(expected[name], sort_keys=True), name


@pytest.mark.parametrize("name", NAMES)
def test_edges(factory: Factory, name: str) -> None:
    with factory() as session:
        for value in EDGES[name]:
            both(session, {name: value})
            session.rollback()


def test_null_in_every_column(factory: Factory) -> None:
    with factory() as session:
        both(session, {})


@given(values=st.fixed_dictionaries(RANDOM))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_rows(factory: Factory, values: dict[str, Any]) -> None:
    with factory() as session:
        both(session, values)
