"""Which messages were handled already: a row that is written with the handler's own work, or not at all.

Another consumer of the same message waits for the end of the transaction that has written the row, and is then told.
"""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.models.keys import inbox_id, inbox_key_id
from sa_taskqueue.store.fetching import skip_locked_first
from sa_taskqueue.store.savepoints import savepoint

FIRST = 1
"""The number of a key's first message."""

_TRIES = 3
"""A key's row may be made, or deleted as old, between two statements."""


class Verdict(enum.Enum):
    """What is to be done with a message."""

    APPLY = "apply"
    SEEN = "seen"
    GAP = "gap"


class Answer(NamedTuple):
    """`last` is the number that was applied last; None where none is known, or the message has none."""

    verdict: Verdict
    last: int | None = None


def first_time(connection: Connection, table: Table, source: str, message_id: str) -> bool:
    """Whether the message is new; then it is taken note of."""
    row = {"id": inbox_id(source, message_id), "source": source or None, "message_id": message_id}
    return _insert(connection, table, row)


def in_order(
    connection: Connection, table: Table, source: str, message_id: str, key: str, seq: int, *, gaps: bool
) -> Answer:
    """Whether the message is the next of its key, or with ``gaps`` a later one; then it is taken note of.

    A key of which nothing is known begins with 1, and with ``gaps`` with whatever number comes first. Were it always
    so, the first message of a key would be lost when its handler fails once and the second is at hand.
    """
    row_id = inbox_key_id(source, key)
    row = {"id": row_id, "source": source or None, "message_id": message_id, "key": key, "seq": seq}
    for _ in range(_TRIES):
        if _advance(connection, table, row, gaps=gaps):
            return Answer(Verdict.APPLY)
        # A locking read, because a snapshot may be older than what the UPDATE has seen.
        last = connection.scalar(select(table.c.seq).where(table.c.id == row_id).with_for_update())
        if last is not None:
            return Answer(Verdict.SEEN if seq <= last else Verdict.GAP, last)
        if seq > FIRST and not gaps:
            return Answer(Verdict.GAP)
        if _insert(connection, table, row):
            return Answer(Verdict.APPLY)
    return Answer(Verdict.GAP)


def prune_inbox(connection: Connection, table: Table, older_than: dt.timedelta, limit: int) -> int:
    """Delete up to ``limit`` rows of single messages that were written longer ago than ``older_than``.

    A key's row stays: without it nobody could tell which number is the next.
    """
    adapter = adapter_for(connection.dialect)
    columns = table.c
    old = and_(columns.seen_at < adapter.ago(older_than.total_seconds()), columns.seq.is_(None))
    pick = select(columns.seen_at, columns.id).where(old).order_by(columns.seen_at, columns.id)
    indexed = adapter.by_index(pick, table, index_name(table, "prune"))
    ids = [row.id for row in skip_locked_first(connection, adapter, indexed, rows=limit)]
    return _delete(connection, table, ids, by_list=not adapter.lists_may_scan, longest=adapter.longest_list)


def _advance(connection: Connection, table: Table, row: Mapping[str, Any], *, gaps: bool) -> bool:
    columns = table.c
    before = columns.seq < bindparam("number") if gaps else columns.seq == bindparam("number") - 1
    statement = (
        update(table)
        .where(columns.id == bindparam("of_id", type_=columns.id.type), before)
        .values(
            seq=bindparam("number"),
            message_id=bindparam("of_message"),
            seen_at=adapter_for(connection.dialect).clock(),
        )
    )
    values = {"of_id": row["id"], "number": row["seq"], "of_message": row["message_id"]}
    return connection.execute(statement, values).rowcount == 1


def _insert(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    adapter = adapter_for(connection.dialect)
    statement = adapter.insert_unless_taken(table, table.c.id)
    if statement is not None:
        counting = statement.execution_options(preserve_rowcount=True)
        return connection.execute(counting, row).rowcount == 1
    try:
        with savepoint(connection):
            connection.execute(insert(table), row)
    except IntegrityError as error:
        if adapter.classify(error) is not ErrorKind.UNIQUE:
            raise
        return False
    return True


def _delete(
    connection: Connection, table: Table, ids: Sequence[uuid.UUID], *, by_list: bool, longest: int | None
) -> int:
    if by_list:
        parts = [ids[start : start + (longest or 1000)] for start in range(0, len(ids), longest or 1000)]
        return sum(connection.execute(delete(table).where(table.c.id.in_(part))).rowcount for part in parts)
    one = delete(table).where(table.c.id == bindparam("old_id", type_=table.c.id.type))
    if ids:
        connection.execute(one, [{"old_id": each} for each in ids])
    return len(ids)
