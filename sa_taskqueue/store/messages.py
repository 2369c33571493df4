"""New messages as rows of the outbox."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, Table, insert

from sa_taskqueue.models.outbox import OUTBOX_COLUMNS
from sa_taskqueue.states import MessageStatus
from sa_taskqueue.store.copying import COPY_THRESHOLD, copy_rows, takes_copy
from sa_taskqueue.store.new_rows import database_now


class NewMessage(Protocol):
    """What the store needs to know of a new message, checked by whoever made it."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def topic(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def key_hash(self) -> uuid.UUID | None: ...
    @property
    def payload(self) -> str: ...
    @property
    def headers(self) -> str | None: ...
    @property
    def run_at(self) -> dt.datetime | None: ...
    @property
    def delay(self) -> dt.timedelta | None: ...


def insert_messages(connection: Connection, table: Table, messages: Sequence[NewMessage]) -> None:
    """Store the messages, by COPY where there are many and server and driver have it. Those of keys have no number."""
    if len(messages) >= COPY_THRESHOLD and takes_copy(connection, table, OUTBOX_COLUMNS):
        copy_rows(connection, table, _each_row(connection, table, messages))
    elif messages:
        connection.execute(insert(table), list(_each_row(connection, table, messages)))


def message_values(message: NewMessage, *, for_debezium: bool) -> dict[str, Any]:
    """The values of a row. What the database fills in itself (its clock) is left out."""
    if for_debezium:
        return {
            "id": message.id,
            "aggregatetype": message.topic,
            "aggregateid": message.key,
            "type": message.type or message.topic,
            "payload": message.payload,
            "headers": message.headers,
        }
    return {
        "id": message.id,
        "topic": message.topic,
        "type": message.type,
        "key": message.key,
        "key_hash": message.key_hash,
        "payload": message.payload,
        "headers": message.headers,
    }


def _each_row(connection: Connection, table: Table, messages: Sequence[NewMessage]) -> Iterator[dict[str, Any]]:
    """Make the values of each row, the same columns in all of them, so that one statement inserts them all."""
    for_debezium = "aggregatetype" in table.c
    if all(message.run_at is None and message.delay is None for message in messages):
        return (message_values(message, for_debezium=for_debezium) for message in messages)
    now = database_now(connection)
    return (_scheduled(message, now) for message in messages)


def _scheduled(message: NewMessage, now: dt.datetime) -> dict[str, Any]:
    due = message.run_at if message.delay is None else now + message.delay
    return {
        **message_values(message, for_debezium=False),
        "status": MessageStatus.NEW if due is None else MessageStatus.SCHEDULED,
        "scheduled_at": now if due is None else due,
    }
