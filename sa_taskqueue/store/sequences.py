"""The numbers of ordered messages: taken under the lock on the key's row, which is kept until the commit.

So the order of the numbers is the order of the commits, and a rollback leaves no gap. The rows of the keys are locked
in the order of their ids, so that two transactions with several keys each cannot wait for each other.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, Table, Update, bindparam, case, insert, select, update
from sqlalchemy.exc import IntegrityError

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.adapters.shapes import Assignments
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import KeyStatus, MessageStatus
from sa_taskqueue.store.fetching import in_parts
from sa_taskqueue.store.savepoints import savepoint

_LONGEST_LIST = 1000
"""Ids in one statement."""

_BLOCK = 50
"""Messages in one UPDATE. 4,000 took 3.9 s one by one on MySQL 9.7, 0.85 s in blocks of 50, 1.1 s of 200; on PostgreSQL
15 0.4 s in every way (2026-12-01).
"""


def assign(connection: Connection, outbox: Table, keys: Table, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Give each of the messages its number, in the order in which they are named; the numbers by id.

    Left out are those that are not stored (any more), have a number, are not due yet or belong to no key. Messages and
    keys become QUEUED and READY. The caller has locked the messages or has just written them; it waits for other
    transactions that have messages of the same keys, and keeps others waiting until it ends.
    """
    standing = _standing(connection, outbox, ids)
    if not standing:
        return {}
    counts: dict[uuid.UUID, int] = {}
    names: dict[uuid.UUID, str] = {}
    for row in standing:
        counts[row.key_hash] = counts.get(row.key_hash, 0) + 1
        names[row.key_hash] = row.key or ""
    following = _Keys(connection, keys).advance(counts, names)
    numbers: dict[uuid.UUID, int] = {}
    for row in reversed(standing):
        following[row.key_hash] -= 1
        numbers[row.id] = following[row.key_hash]
    _write(connection, outbox, numbers)
    return numbers


def assign_waiting(connection: Connection, outbox: Table, keys: Table, limit: int) -> int:
    """Give numbers to messages of keys among the ``limit`` oldest that are free; how many got theirs.

    For the relay, at READ COMMITTED: those of writers that know nothing of numbers, published by a late hook of the
    commit, or promoted. Several relays may do it at once. One that left out what another has locked would give a later
    message of a key the earlier number: so it waits, and looks again.
    """
    adapter, columns = adapter_for(connection.dialect), outbox.c
    oldest = (
        select(columns.id, columns.key_hash)
        .where(columns.status == status_literal(MessageStatus.NEW))
        .order_by(columns.ready_at, columns.id)
        .limit(limit)
    )
    rows = connection.execute(adapter.by_index(oldest, outbox, index_name(outbox, "claim"))).all()
    found = [row.id for row in rows if row.key_hash is not None]
    lock = adapter.lock(outbox)
    if lock is not None:
        for part in in_parts(sorted(found), adapter.longest_list):
            connection.execute(lock, {"ids": part})
    return len(assign(connection, outbox, keys, found)) if found else 0


def _standing(connection: Connection, outbox: Table, ids: Sequence[uuid.UUID]) -> list[Any]:
    """The messages that get a number, in the order of ``ids``: a savepoint may have taken some away."""
    columns = outbox.c
    statement = select(columns.id, columns.key_hash, columns.key).where(
        columns.id.in_(bindparam("ids", expanding=True)),
        columns.key_hash.is_not(None),
        columns.seq.is_(None),
        columns.status.in_([MessageStatus.NEW, MessageStatus.RUNNING]),
    )
    found: dict[uuid.UUID, Any] = {
        row.id: row for part in in_parts(ids, _LONGEST_LIST) for row in connection.execute(statement, {"ids": part})
    }
    return [found[each] for each in dict.fromkeys(ids) if each in found]


def _write(connection: Connection, outbox: Table, numbers: Mapping[uuid.UUID, int]) -> None:
    """Write the numbers: one statement for each full block, and one for each message of the rest."""
    pairs = list(numbers.items())
    full = len(pairs) - len(pairs) % _BLOCK
    for start in range(0, full, _BLOCK):
        block = {
            name: value
            for position, (each, number) in enumerate(pairs[start : start + _BLOCK])
            for name, value in ((f"id_{position}", each), (f"number_{position}", number))
        }
        connection.execute(_write_block(outbox), block)
    columns = outbox.c
    one = _queued(outbox).where(columns.id == bindparam("of_id", type_=columns.id.type)).values(seq=bindparam("number"))
    if pairs[full:]:
        connection.execute(one, [{"of_id": each, "number": number} for each, number in pairs[full:]])


@functools.lru_cache(maxsize=64)
def _write_block(outbox: Table) -> Update:
    """Built once for each table."""
    columns = outbox.c
    ids = [bindparam(f"id_{position}", type_=columns.id.type) for position in range(_BLOCK)]
    found = [(columns.id == each, bindparam(f"number_{each.key[3:]}", type_=BigInteger())) for each in ids]
    return _queued(outbox).where(columns.id.in_(ids)).values(seq=case(*found))


def _queued(outbox: Table) -> Update:
    return update(outbox).values(status=status_literal(MessageStatus.QUEUED), reserved_until=None, reserved_by=None)


class _Keys:
    """The rows of the keys."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self._adapter = adapter_for(connection.dialect)

    def advance(self, counts: Mapping[uuid.UUID, int], names: Mapping[uuid.UUID, str]) -> dict[uuid.UUID, int]:
        """Lock the rows, made where absent, and take so many numbers of each; the number after the last one taken."""
        rows = [
            {"id": each, "key": names[each], "next_seq": 1 + counts[each], "status": KeyStatus.READY}
            for each in sorted(counts)
        ]
        upsert = self._adapter.insert_or_change(self._table, self._table.c.id, self._step)
        if upsert is None:
            self._make_missing(rows)
            self._raise(rows)
        elif self._connection.dialect.insert_executemany_returning and self._connection.dialect.insert_returning:
            returning = upsert.returning(self._table.c.id, self._table.c.next_seq)
            return {row.id: row.next_seq for row in self._connection.execute(returning, rows)}
        else:
            self._connection.execute(upsert, rows)
        columns = self._table.c
        read = select(columns.id, columns.next_seq).where(columns.id.in_(bindparam("ids", expanding=True)))
        return {
            row.id: row.next_seq
            for part in in_parts(list(counts), _LONGEST_LIST)
            for row in self._connection.execute(read, {"ids": part})
        }

    def _step(self, brought: Any) -> Assignments:
        """What becomes of a row that is there already: ``brought`` are the values for a new one."""
        return [(self._table.c.next_seq, self._table.c.next_seq + brought.next_seq - ONE), *self._wake(self._adapter)]

    def _wake(self, adapter: Adapter) -> Assignments:
        columns = self._table.c
        idle = columns.status == status_literal(KeyStatus.IDLE)
        return [
            (columns.due_at, case((idle, adapter.clock()), else_=columns.due_at)),
            (columns.status, case((idle, status_literal(KeyStatus.READY)), else_=columns.status)),
        ]

    def _make_missing(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Without numbers yet. Another transaction may make the same row: its end is waited for."""
        columns = self._table.c
        there = {
            each
            for part in in_parts([row["id"] for row in rows], self._adapter.longest_list)
            for each in self._connection.scalars(select(columns.id).where(columns.id.in_(part)))
        }
        for row in rows:
            if row["id"] not in there:
                self._make(row)

    def _make(self, row: Mapping[str, Any]) -> None:
        try:
            with savepoint(self._connection):
                self._connection.execute(insert(self._table), {"id": row["id"], "key": row["key"]})
        except IntegrityError as error:
            if self._adapter.classify(error) is not ErrorKind.UNIQUE:
                raise

    def _raise(self, rows: Sequence[Mapping[str, Any]]) -> None:
        columns = self._table.c
        taken = columns.next_seq + bindparam("taken")
        change = (
            update(self._table)
            .where(columns.id == bindparam("of_id", type_=columns.id.type))
            .ordered_values((columns.next_seq, taken), *self._wake(self._adapter))
        )
        self._connection.execute(change, [{"of_id": row["id"], "taken": row["next_seq"] - 1} for row in rows])
