"""What an operator does to messages: look, send again. Every change raises the epoch: no old holder can mark."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, case, func, null, select, type_coerce, update

from sa_taskqueue.adapters.base import status_literal
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.models.types import UtcDateTime
from sa_taskqueue.states import KeyStatus, MessageStatus


class Selection(NamedTuple):
    """Which messages; None does not limit. `sent_after` and `sent_before` are aware datetimes.

    In `topic`, ``*`` stands for any characters and ``?`` for one; upper and lower case may count as one, as the
    database compares texts.
    """

    topic: str | None = None
    key: str | None = None
    sent_after: dt.datetime | None = None
    sent_before: dt.datetime | None = None


class OutboxStatistics(NamedTuple):
    """How many messages and keys there are by status, and for how many seconds the oldest has been due."""

    messages: dict[MessageStatus, int]
    keys: dict[KeyStatus, int]
    oldest_message: float | None
    oldest_key: float | None


class BlockedKey(NamedTuple):
    """A key that waits for an operator: its first message, what waits behind it, and why. `error` is JSON text."""

    key: str
    message_id: uuid.UUID | None
    topic: str | None
    seq: int
    waiting: int
    fails: int
    error: str | None


def now(connection: Connection) -> dt.datetime:
    """The database's clock, aware."""
    clock: dt.datetime = connection.execute(
        select(type_coerce(adapter_for(connection.dialect).clock(), UtcDateTime()))
    ).scalar_one()
    return clock


def outbox_statistics(connection: Connection, table: Table, keys: Table | None) -> OutboxStatistics:
    """Counts of all messages and keys."""
    adapter = adapter_for(connection.dialect)

    def oldest(column: ColumnElement[Any], waiting: ColumnElement[bool]) -> float | None:
        seconds = connection.scalar(select(adapter.seconds_until(func.min(column))).where(waiting))
        return None if seconds is None else max(0.0, -float(seconds))

    messages = connection.execute(select(table.c.status, func.count()).group_by(table.c.status)).all()
    waiting = oldest(table.c.ready_at, table.c.status == status_literal(MessageStatus.NEW))
    found = OutboxStatistics({MessageStatus(name): count for name, count in messages}, {}, waiting, None)
    if keys is None:
        return found
    counts = connection.execute(select(keys.c.status, func.count()).group_by(keys.c.status)).all()
    ready = (keys.c.status == status_literal(KeyStatus.READY)) & (keys.c.due_at <= adapter.statement_clock())
    by_status = {KeyStatus(name): count for name, count in counts}
    return found._replace(keys=by_status, oldest_key=oldest(keys.c.due_at, ready))


def blocked_keys(connection: Connection, table: Table, keys: Table, limit: int) -> list[BlockedKey]:
    """Up to `limit` keys that are BLOCKED, the longest waiting first."""
    head = (table.c.key_hash == keys.c.id) & (table.c.seq == keys.c.sent_seq + 1)
    statement = (
        select(keys.c.key, table.c.id, table.c.topic, keys.c.sent_seq, keys.c.next_seq, keys.c.fails, keys.c.error)
        .select_from(keys.outerjoin(table, head))
        .where(keys.c.status == status_literal(KeyStatus.BLOCKED))
        .order_by(keys.c.due_at, keys.c.id)
        .limit(limit)
    )
    return [
        BlockedKey(row.key, row.id, row.topic, row.sent_seq + 1, row.next_seq - 2 - row.sent_seq, row.fails, row.error)
        for row in connection.execute(statement)
    ]


def replay_unordered(connection: Connection, table: Table, selection: Selection, limit: int) -> int:
    """Make up to `limit` SENT messages that no key orders NEW again; how many."""
    chosen = _chosen(table, selection, MessageStatus.SENT)
    found = connection.scalars(select(table.c.id).where(*chosen, table.c.seq.is_(None)).limit(limit)).all()
    return _free(connection, table, found, MessageStatus.SENT)


def replay_ordered(
    connection: Connection, table: Table, keys: Table, selection: Selection, after: uuid.UUID | None, limit: int
) -> tuple[int, uuid.UUID | None]:
    """Queue the SENT messages of up to `limit` keys again, with their numbers, and set the keys back to the first.

    All of a key at once, so that they leave in order. How many messages; the last key, None if there are no more.
    """
    columns = table.c
    chosen = [*_chosen(table, selection, MessageStatus.SENT), columns.seq.is_not(None)]
    statement = select(columns.key_hash, func.min(columns.seq)).where(*chosen).group_by(columns.key_hash)
    if after is not None:
        statement = statement.where(columns.key_hash > after)
    rows = connection.execute(statement.order_by(columns.key_hash).limit(limit)).all()
    replayed = 0
    for key, first in rows:
        _lock(connection, keys, [key])
        own = update(table).where(columns.key_hash == key, *chosen)
        replayed += connection.execute(
            own.values(status=status_literal(MessageStatus.QUEUED), epoch=columns.epoch + 1, sent_at=null())
        ).rowcount
        connection.execute(_set_back(connection, keys, first - 1).where(keys.c.id == key))
    return replayed, rows[-1][0] if len(rows) == limit else None


def redrive_failed(connection: Connection, table: Table, selection: Selection, limit: int) -> int:
    """Make up to `limit` FAILED messages NEW again; how many. One of a key gets a new number: its old one is past."""
    chosen = _chosen(table, selection, MessageStatus.FAILED)
    found = connection.scalars(select(table.c.id).where(*chosen).limit(limit)).all()
    return _free(connection, table, found, MessageStatus.FAILED)


def redrive_blocked(connection: Connection, table: Table, keys: Table, key: str | None, limit: int) -> int:
    """Free up to `limit` BLOCKED keys, their tries counted from 0; how many."""
    blocked = keys.c.status == status_literal(KeyStatus.BLOCKED)
    statement = select(keys.c.id).where(blocked).limit(limit)
    if key is not None:
        statement = statement.where(keys.c.key == key)
    found = _lock(connection, keys, list(connection.scalars(statement)))
    if not found:
        return 0
    adapter, columns = adapter_for(connection.dialect), keys.c
    freed = update(keys).where(columns.id.in_(found), blocked)
    changed = connection.execute(
        freed.values(
            status=status_literal(KeyStatus.READY),
            epoch=columns.epoch + 1,
            due_at=adapter.clock(),
            fails=0,
            error=null(),
            reserved_by=null(),
        )
    ).rowcount
    heads = update(table).where(table.c.key_hash.in_(found), table.c.status == status_literal(MessageStatus.BLOCKED))
    connection.execute(heads.values(status=status_literal(MessageStatus.QUEUED), epoch=table.c.epoch + 1))
    return changed


def _free(connection: Connection, table: Table, ids: Sequence[uuid.UUID], status: MessageStatus) -> int:
    """NEW, as if just published: a message of a key takes its place behind the others."""
    if not ids:
        return 0
    columns = table.c
    statement = update(table).where(columns.id.in_(_lock(connection, table, ids)), columns.status == status)
    return connection.execute(
        statement.values(
            status=status_literal(MessageStatus.NEW),
            seq=null(),
            attempt=0,
            epoch=columns.epoch + 1,
            ready_at=adapter_for(connection.dialect).clock(),
            sent_at=null(),
        )
    ).rowcount


def _set_back(connection: Connection, keys: Table, to: int) -> Any:
    columns, adapter = keys.c, adapter_for(connection.dialect)
    idle = columns.status == status_literal(KeyStatus.IDLE)
    return update(keys).ordered_values(
        (columns.sent_seq, case((columns.sent_seq > to, to), else_=columns.sent_seq)),
        (columns.due_at, adapter.clock()),
        (columns.epoch, columns.epoch + 1),
        (columns.reserved_by, null()),
        (columns.status, case((idle, status_literal(KeyStatus.READY)), else_=columns.status)),
    )


def _lock(connection: Connection, table: Table, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Lock the rows in the order of their ids, where the database can."""
    statement = adapter_for(connection.dialect).lock(table)
    ordered = sorted(ids)
    if statement is not None and ordered:
        connection.execute(statement, {"ids": ordered})
    return ordered


def _chosen(table: Table, selection: Selection, status: MessageStatus) -> list[ColumnElement[bool]]:
    columns = table.c
    conditions: list[ColumnElement[bool]] = [columns.status == status_literal(status)]
    if selection.topic is not None:
        conditions.append(columns.topic.like(_like(selection.topic), escape="|"))
    if selection.key is not None:
        conditions.append(columns.key == selection.key)
    if selection.sent_after is not None:
        conditions.append(columns.sent_at >= selection.sent_after)
    if selection.sent_before is not None:
        conditions.append(columns.sent_at < selection.sent_before)
    return conditions


def _like(pattern: str) -> str:
    escaped = pattern.replace("|", "||").replace("%", "|%").replace("_", "|_")
    return escaped.replace("*", "%").replace("?", "_")
