"""The messages that no key orders: leased like tasks, in batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Float,
    Integer,
    String,
    Table,
    Text,
    bindparam,
    case,
    func,
    null,
    select,
    update,
)

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.shapes import AnySelect, Assignments, Inputs, TakeShape
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import MessageStatus
from sa_taskqueue.store.leases import let_go
from sa_taskqueue.store.outgoing import Ending, Outgoing, OutgoingReader, UnreadableMessage
from sa_taskqueue.store.reading import raw
from sa_taskqueue.store.rows import Pair
from sa_taskqueue.store.running import change_held, take

Source = Mapping[str, ColumnElement[Any]]


class Batch(NamedTuple):
    """What one claim brought: messages to send, and whether some were seen that still need their number."""

    messages: list[Outgoing]
    unnumbered: bool
    full: bool


class UnorderedMessages:
    """Claim, end and renewal of one outbox, built once. With `keyed` a row of a key is only seen, and left as it is.

    Such a row is one whose writer took no number for it. It is not passed over by a condition: a claim would walk over
    all of them, and a search for them over everything else.
    """

    def __init__(self, table: Table, adapter: Adapter, *, keyed: bool) -> None:
        self._table, self._adapter, self._keyed = table, adapter, keyed
        self._reader = OutgoingReader(table)
        self._claim = adapter.take(table, self._due(), self._claimed(), self._reader.columns())
        running = MessageStatus.RUNNING
        self._sent = adapter.held(table, lambda _: [*sent(table, adapter), *let_go(table)], {}, status=running)
        self._deleted = adapter.held(table, None, {}, status=running)
        inputs: Inputs = {"new_status": String(9), "delay": Double(), "uncounted": Integer(), "new_error": Text()}
        self._ended = adapter.held(table, self._end, inputs, status=running)
        self._renew = adapter.held(table, self._renewed, {}, wait=False, status=running)
        self._lapsed = self._taking_over()
        self._unreadable = failing(table, adapter)

    def claim(self, connection: Connection, limit: int, *, lease: float, by: str) -> Batch:
        """Up to `limit` messages that are due, the oldest first, held for `lease` seconds."""
        values = {"at_most": min(limit, self._adapter.longest_list or limit), "lease": lease, "holder": by}
        rows = take(connection, self._claim, values)
        messages, unreadable = self._reader.read(connection.dialect, rows)
        for each in unreadable:
            fail_unreadable(connection, self._unreadable, each)
        if not self._keyed:
            return Batch(sorted(messages), unnumbered=False, full=len(rows) == values["at_most"])
        free = sorted(each for each in messages if each.key_hash is None)
        return Batch(free, unnumbered=len(free) < len(messages), full=len(rows) == values["at_most"])

    def end(self, connection: Connection, endings: Sequence[Ending], *, keep: bool = True) -> set[UUID]:
        """Write the ends of the messages still held; the ids of these. Without `keep` what was sent is deleted."""
        done = [(one.id, one.epoch) for one in endings if one.status is MessageStatus.SENT]
        rest = [one for one in endings if one.status is not MessageStatus.SENT]
        changed = change_held(connection, self._sent if keep else self._deleted, done)
        inputs = [(one.status.value, float(one.delay), int(not one.count_attempt), one.error) for one in rest]
        return changed | change_held(connection, self._ended, [(one.id, one.epoch) for one in rest], inputs)

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> set[UUID]:
        """Hold for `lease` more seconds, without waiting for a lock; those that are."""
        return change_held(connection, self._renew, held, values={"lease": lease})

    def take_over(self, connection: Connection, limit: int) -> int:
        """Free up to `limit` messages whose relay died or was cut off; how many."""
        return len(take(connection, self._lapsed, {"at_most": limit}))

    def _due(self) -> AnySelect:
        columns = self._table.c
        due = (
            select(columns.id)
            .where(columns.status == status_literal(MessageStatus.NEW))
            .order_by(columns.ready_at, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        return self._adapter.by_index(due, self._table, index_name(self._table, "claim"))

    def _claimed(self) -> Assignments:
        columns = self._table.c
        claimed: Assignments = [
            (columns.attempt, columns.attempt + ONE),
            (columns.epoch, columns.epoch + ONE),
            (columns.reserved_until, self._adapter.after(bindparam("lease", type_=Float()))),
            (columns.reserved_by, bindparam("holder", type_=String())),
            (columns.status, status_literal(MessageStatus.RUNNING)),
        ]
        if not self._keyed:
            return claimed
        free = columns.key_hash.is_(None)
        return [(column, case((free, value), else_=column)) for column, value in claimed]

    def _end(self, source: Source) -> Assignments:
        """SCHEDULED after a delay, NEW at once, or FAILED."""
        columns, adapter = self._table.c, self._adapter
        failed = source["new_status"] == status_literal(MessageStatus.FAILED)
        return [
            (columns.status, source["new_status"]),
            (columns.scheduled_at, case((failed, columns.scheduled_at), else_=adapter.after(source["delay"]))),
            (columns.sent_at, case((failed, adapter.clock()), else_=null())),
            (columns.attempt, columns.attempt - source["uncounted"]),
            (columns.error, func.coalesce(adapter.json(source["new_error"]), columns.error)),
            *let_go(self._table),
        ]

    def _renewed(self, _: Source) -> Assignments:
        return [(self._table.c.reserved_until, self._adapter.after(bindparam("lease", type_=Float())))]

    def _taking_over(self) -> TakeShape:
        columns, adapter = self._table.c, self._adapter
        lapsed = (
            select(columns.id)
            .where(columns.status == status_literal(MessageStatus.RUNNING))
            .where(columns.reserved_until < adapter.statement_clock())
            .order_by(columns.reserved_until, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        lapsed = adapter.by_index(lapsed, self._table, index_name(self._table, "take_over"))
        assignments: Assignments = [(columns.status, status_literal(MessageStatus.NEW)), *let_go(self._table)]
        return adapter.take(self._table, lapsed, assignments, [raw(columns.id)])


def sent(table: Table, adapter: Adapter) -> Assignments:
    """The broker has confirmed it."""
    columns = table.c
    return [
        (columns.status, status_literal(MessageStatus.SENT)),
        (columns.sent_at, adapter.clock()),
        (columns.error, null()),
    ]


def failing(table: Table, adapter: Adapter) -> Any:
    """The statement for `fail_unreadable`."""
    columns = table.c
    return (
        update(table)
        .where(columns.id == bindparam("raw_id", type_=adapter.id_type()))
        .values(
            status=status_literal(MessageStatus.FAILED),
            error=adapter.json(bindparam("new_error", type_=Text())),
            sent_at=adapter.clock(),
            epoch=columns.epoch + ONE,
            reserved_until=null(),
            reserved_by=null(),
        )
    )


def fail_unreadable(connection: Connection, statement: Any, row: UnreadableMessage) -> None:
    """FAILED with code ``undecodable``: the row harms only itself, and an operator may mend and redrive it."""
    error = json.dumps({"code": "undecodable", "message": row.reason})
    connection.execute(statement, {"raw_id": row.raw_id, "new_error": error})
