"""The rows that go in and out of the outbox's store, and what makes them of the driver's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Dialect, Table

from sa_taskqueue.states import KeyStatus, MessageStatus
from sa_taskqueue.store.reading import UNREADABLE, Converter, converter, raw


class Outgoing(NamedTuple):
    """A message of the outbox as a relay has claimed or read it. JSON is text, the datetime is aware UTC."""

    id: UUID
    topic: str
    type: str | None
    key: str | None
    key_hash: UUID | None
    seq: int | None
    payload: str
    headers: str | None
    attempt: int
    epoch: int
    created_at: dt.datetime


class ClaimedKey(NamedTuple):
    """A key that a relay has leased: epoch raised already. All messages below `next_seq` are committed."""

    id: UUID
    epoch: int
    sent_seq: int
    next_seq: int
    fails: int


class Ending(NamedTuple):
    """How one message ends or goes on. SCHEDULED (without a key) with a delay in seconds; `error` is JSON text."""

    id: UUID
    epoch: int
    status: MessageStatus
    delay: float = 0.0
    error: str | None = None
    count_attempt: bool = True


class Advance(NamedTuple):
    """How a relay leaves a key: `settled` messages more are behind it; due again after `delay` seconds."""

    id: UUID
    epoch: int
    settled: int
    status: KeyStatus = KeyStatus.READY
    delay: float = 0.0
    fails: int = 0
    error: str | None = None


class UnreadableMessage(NamedTuple):
    """A message that cannot be converted: its id as the driver gave it, and why."""

    raw_id: Any
    reason: str


_RAW = ("id", "key_hash", "created_at")
_TEXTS = ("topic", "payload")


class OutgoingReader:
    """Reads ids and datetimes as the driver gives them and converts them here: one bad value harms one row only."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._converters: dict[Dialect, list[tuple[int, Converter]]] = {}

    def columns(self) -> list[ColumnElement[Any]]:
        """The fields of `Outgoing`."""
        return [raw(self._table.c[name]) if name in _RAW else self._table.c[name] for name in Outgoing._fields]

    def read(self, dialect: Dialect, rows: Iterable[Any]) -> tuple[list[Outgoing], list[UnreadableMessage]]:
        """The messages in the given order, and what could not be read."""
        converters = self._for(dialect)
        good: list[Outgoing] = []
        bad: list[UnreadableMessage] = []
        for row in rows:
            values = list(row)
            try:
                for position, convert in converters:
                    values[position] = convert(values[position])
                good.append(Outgoing._make(values))
            except UNREADABLE as error:
                bad.append(UnreadableMessage(row[0], f"{type(error).__name__}: {error}"))
        return good, bad

    def _for(self, dialect: Dialect) -> Sequence[tuple[int, Converter]]:
        found = self._converters.get(dialect)
        if found is None:
            found = self._converters[dialect] = list(self._build(dialect))
        return found

    def _build(self, dialect: Dialect) -> list[tuple[int, Converter]]:
        found: list[tuple[int, Converter]] = []
        for position, name in enumerate(Outgoing._fields):
            if name in _RAW:
                convert = converter(self._table.c[name].type, dialect)
                if convert is not None:
                    found.append((position, convert))
            elif name in _TEXTS:
                found.append((position, _text))
        return found


def _text(value: Any) -> str:
    """SQLite keeps a value of any type in any column."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text belongs")
    return value
