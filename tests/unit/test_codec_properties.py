"""Whatever is accepted comes back as it was; whatever is not is refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from sa_taskqueue import codec
from sa_taskqueue.exceptions import BodyError, NaiveDatetime

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
PLAIN = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner), max_leaves=20)

# Fixed ones: a moment in the hour that a clock skips or repeats never equals the same moment in another zone.
_OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))

_ANYTHING = st.recursive(
    _SCALARS | st.text() | st.floats() | st.binary() | st.dates() | st.decimals() | st.complex_numbers() | st.uuids(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
    max_leaves=10,
)


@dataclass
class Record:
    when: datetime
    day: date | None
    amount: Decimal
    id: UUID
    blob: bytes
    notes: dict[str, list[str]]
    pair: tuple[int, float]


@given(PLAIN)
def test_plain_json_comes_back_as_it_was(value: object) -> None:
    assert codec.decode(codec.encode(value)) == value


@given(PLAIN)
def test_the_fast_way_and_the_careful_way_store_the_same(value: object) -> None:
    fast = codec._fast(value)
    assert fast is None or fast == codec._encode_json(codec._to_plain(value, "$", 0))


@given(
    st.builds(
        Record,
        when=st.datetimes(timezones=_OFFSETS),
        amount=st.decimals(allow_nan=False, allow_infinity=False),
        notes=st.dictionaries(_TEXT, st.lists(_TEXT)),
        pair=st.tuples(st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    )
)
def test_records_come_back_as_they_were(record: Record) -> None:
    decoded = codec.decode(codec.encode([record]), list[Record])[0]
    assert decoded == record
    assert str(decoded.amount) == str(record.amount)


@given(_ANYTHING)
def test_anything_is_stored_as_strict_json_or_refused_by_name(value: Any) -> None:
    try:
        text = codec.encode(value)
    except (BodyError, NaiveDatetime):
        return
    assert "\0" not in text
    text.encode()
    json.loads(text, parse_constant=_fail)


@given(st.text() | PLAIN.map(json.dumps))
def test_reading_never_fails_but_by_value_error(text: str) -> None:
    for annotation in (Any, int, Record, list[datetime], dict[str, UUID], Decimal | None, bytes | str):
        try:
            codec.decode(text, annotation)
        except ValueError:
            continue


def _fail(name: str) -> object:
    raise AssertionError(name)
