"""The messages of keys: a key is leased, and its messages are read, sent and marked in the order of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
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
    literal_column,
    null,
    select,
)

from sa_taskqueue.adapters.base import ONE, Adapter, status_literal
from sa_taskqueue.adapters.shapes import AnySelect, Assignments, Inputs
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import KeyStatus, MessageStatus
from sa_taskqueue.store.fetching import in_parts
from sa_taskqueue.store.outbox import fail_unreadable, failing, sent
from sa_taskqueue.store.outgoing import Advance, ClaimedKey, Ending, Outgoing, OutgoingReader
from sa_taskqueue.store.reading import converter, raw
from sa_taskqueue.store.rows import Pair
from sa_taskqueue.store.running import change_held, take

Source = Mapping[str, ColumnElement[Any]]
Place = tuple[UUID, int]
"""Key and number: they are without gaps, so the next messages of a key are found one by one in a unique index, past
what was sent and is kept."""


class KeyBatch(NamedTuple):
    """A leased key: its messages that are to be sent, in order, and up to which number it was read."""

    key: ClaimedKey
    messages: list[Outgoing]
    read_to: int


class OrderedMessages:
    """Claim, marks and renewal of the keys of one outbox, built once."""

    def __init__(self, table: Table, keys: Table, adapter: Adapter) -> None:
        self._table, self._keys, self._adapter = table, keys, adapter
        self._reader = OutgoingReader(table)
        names = [raw(keys.c.id), *(keys.c[name] for name in ClaimedKey._fields[1:])]
        self._claim = adapter.take(keys, self._due(), self._leased(), names)
        place = table.c.key_hash, table.c.seq
        self._at_places = adapter.at_places(self._queued(), *place)
        of_key = place[0] == bindparam("of_key", type_=place[0].type)
        self._of_key = self._queued().where(of_key, place[1].between(bindparam("low"), bindparam("high")))
        ready, queued = KeyStatus.READY, MessageStatus.QUEUED
        self._moved = adapter.held(keys, self._onward, {"settled": BigInteger()}, status=ready)
        stops: Inputs = {"settled": BigInteger(), "new_status": String(9), "delay": Double(), "new_fails": Integer()}
        self._stopped = adapter.held(keys, self._stop, {**stops, "new_error": Text()}, status=ready)
        self._sent = adapter.held(table, lambda _: [*self._tried(), *sent(table, adapter)], {}, status=queued)
        self._deleted = adapter.held(table, None, {}, status=queued)
        inputs: Inputs = {"new_status": String(9), "new_error": Text()}
        self._not_sent = adapter.held(table, self._failed, inputs, status=queued)
        self._renew = adapter.held(keys, self._renewed, {}, wait=False, status=ready)
        self._unreadable = failing(table, adapter)

    def claim(self, connection: Connection, keys: int, messages: int, *, lease: float, by: str) -> list[KeyBatch]:
        """Up to so many keys that are due, and about so many messages of them, shared out evenly.

        Each key gives at least one message. The keys are held for `lease` seconds.
        """
        values = {"at_most": min(keys, self._adapter.longest_list or keys), "lease": lease, "holder": by}
        to_id = converter(self._keys.c.id.type, connection.dialect) or _same
        rows = take(connection, self._claim, values)
        claimed = sorted(ClaimedKey(to_id(row[0]), *row[1:]) for row in rows)
        if not claimed:
            return []
        ends = _shares(claimed, messages)
        found = self._messages(connection, [(key.id, key.sent_seq + 1, ends[key.id]) for key in claimed])
        return [KeyBatch(key, found.get(key.id, []), ends[key.id]) for key in claimed]

    def advance(
        self, connection: Connection, steps: Sequence[Advance], endings: Mapping[UUID, Sequence[Ending]], *, keep: bool
    ) -> set[UUID]:
        """Move the keys that are still held, let go of them, and mark their messages; the ids of these keys.

        Keys first, then messages, each in the order of the ids: so does everybody who locks both. Without `keep` what
        was sent is deleted.
        """
        plain = [one for one in steps if _goes_on(one)]
        rest = [one for one in steps if not _goes_on(one)]
        moved = change_held(connection, self._moved, _pairs(plain), [(one.settled,) for one in plain])
        stops = [(one.settled, one.status.value, float(one.delay), one.fails, one.error) for one in rest]
        moved |= change_held(connection, self._stopped, _pairs(rest), stops)
        self._mark(connection, [one for key in moved for one in endings.get(key, ())], keep=keep)
        return moved

    def _mark(self, connection: Connection, endings: Sequence[Ending], *, keep: bool) -> None:
        """SENT, BLOCKED, FAILED, or QUEUED again after a failed try."""
        done = [(one.id, one.epoch) for one in endings if one.status is MessageStatus.SENT]
        change_held(connection, self._sent if keep else self._deleted, done)
        rest = [one for one in endings if one.status is not MessageStatus.SENT]
        inputs = [(one.status.value, one.error) for one in rest]
        change_held(connection, self._not_sent, [(one.id, one.epoch) for one in rest], inputs)

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> set[UUID]:
        """Hold keys for `lease` more seconds, without waiting for a lock; those that are."""
        return change_held(connection, self._renew, held, values={"lease": lease})

    def _messages(self, connection: Connection, ranges: Sequence[tuple[UUID, int, int]]) -> dict[UUID, list[Outgoing]]:
        if self._at_places is None:
            rows = [row for each in ranges for row in connection.execute(self._of_key, _range_values(*each))]
        else:
            places = [(key, seq) for key, low, high in ranges for seq in range(low, high + 1)]
            rows = [
                row
                for part in in_parts(places, self._adapter.longest_list)
                for row in connection.execute(self._at_places, _place_values(part))
            ]
        messages, unreadable = self._reader.read(connection.dialect, rows)
        for each in unreadable:
            fail_unreadable(connection, self._unreadable, each)
        found: dict[UUID, list[Outgoing]] = {}
        for message in sorted(messages, key=_number):
            if message.key_hash is not None:
                found.setdefault(message.key_hash, []).append(message)
        return found

    def _due(self) -> AnySelect:
        columns = self._keys.c
        due = (
            select(columns.id)
            .where(columns.status == status_literal(KeyStatus.READY))
            .where(columns.due_at <= self._adapter.statement_clock())
            .order_by(columns.due_at, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        return self._adapter.by_index(due, self._keys, index_name(self._keys, "claim"))

    def _leased(self) -> Assignments:
        columns = self._keys.c
        return [
            (columns.epoch, columns.epoch + ONE),
            (columns.due_at, self._adapter.after(bindparam("lease", type_=Float()))),
            (columns.reserved_by, bindparam("holder", type_=String())),
        ]

    def _queued(self) -> AnySelect:
        """What was settled out of turn (sent by a replay, given up, deleted) is not read; the key passes over it."""
        return select(*self._reader.columns()).where(self._table.c.status == status_literal(MessageStatus.QUEUED))

    def _onward(self, source: Source) -> Assignments:
        columns = self._keys.c
        ended = columns.sent_seq + source["settled"] + ONE >= columns.next_seq
        idle = case((ended, status_literal(KeyStatus.IDLE)), else_=status_literal(KeyStatus.READY))
        return [
            (columns.status, idle),
            (columns.sent_seq, columns.sent_seq + source["settled"]),
            (columns.fails, literal_column("0", Integer())),
            (columns.error, null()),
            (columns.due_at, self._adapter.clock()),
            *self._free(),
        ]

    def _stop(self, source: Source) -> Assignments:
        columns = self._keys.c
        return [
            (columns.status, source["new_status"]),
            (columns.sent_seq, columns.sent_seq + source["settled"]),
            (columns.fails, source["new_fails"]),
            (columns.error, func.coalesce(self._adapter.json(source["new_error"]), columns.error)),
            (columns.due_at, self._adapter.after(source["delay"])),
            *self._free(),
        ]

    def _free(self) -> Assignments:
        columns = self._keys.c
        return [(columns.epoch, columns.epoch + ONE), (columns.reserved_by, null())]

    def _tried(self) -> Assignments:
        columns = self._table.c
        return [(columns.attempt, columns.attempt + ONE)]

    def _failed(self, source: Source) -> Assignments:
        columns, adapter = self._table.c, self._adapter
        failed = source["new_status"] == status_literal(MessageStatus.FAILED)
        return [
            (columns.status, source["new_status"]),
            (columns.sent_at, case((failed, adapter.clock()), else_=columns.sent_at)),
            (columns.error, func.coalesce(adapter.json(source["new_error"]), columns.error)),
            *self._tried(),
        ]

    def _renewed(self, _: Source) -> Assignments:
        return [(self._keys.c.due_at, self._adapter.after(bindparam("lease", type_=Float())))]


def _pairs(steps: Sequence[Advance]) -> list[Pair]:
    return [(one.id, one.epoch) for one in steps]


def _goes_on(step: Advance) -> bool:
    """Whether nothing stopped the key: what is left of it may be taken at once."""
    return step.status is KeyStatus.READY and not step.delay and not step.fails and step.error is None


def _shares(keys: Sequence[ClaimedKey], messages: int) -> dict[UUID, int]:
    """Up to which number each key is read: an equal share for each, and what some do not need for the others."""
    ends, left, waiting = {}, messages, sorted(keys, key=lambda key: key.next_seq - key.sent_seq)
    for place, key in enumerate(waiting):
        share = max(1, left // (len(waiting) - place))
        ends[key.id] = min(key.next_seq - 1, key.sent_seq + share)
        left -= ends[key.id] - key.sent_seq
    return ends


def _place_values(places: Sequence[Place]) -> dict[str, Any]:
    return {"places": places, "firsts": [first for first, _ in places], "seconds": [second for _, second in places]}


def _range_values(key: UUID, low: int, high: int) -> dict[str, Any]:
    return {"of_key": key, "low": low, "high": high}


def _number(message: Outgoing) -> int:
    return message.seq or 0


def _same(value: Any) -> Any:
    return value
