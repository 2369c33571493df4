"""What relays do to an outbox beside sending: make due messages free, delete old ones, see whether anything is due."""

from __future__ import annotations

import contextlib
from datetime import timedelta

from sqlalchemy import Connection, Integer, Table, bindparam, literal_column, select
from sqlalchemy.exc import SQLAlchemyError

from sa_taskqueue.adapters.base import Adapter, status_literal
from sa_taskqueue.adapters.shapes import AnySelect
from sa_taskqueue.models.indexes import index_name
from sa_taskqueue.states import KeyStatus, MessageStatus
from sa_taskqueue.store.promotion import lock_name
from sa_taskqueue.store.pruning import prune
from sa_taskqueue.store.reading import raw
from sa_taskqueue.store.running import take


class OutboxUpkeep:
    """The upkeep of one outbox, its statements built once."""

    def __init__(self, table: Table, keys: Table | None, adapter: Adapter) -> None:
        self._table, self._adapter = table, adapter
        columns, index = table.c, index_name(table, "promote")
        self._lock, self._unlock = adapter.try_lock(lock_name(table)), adapter.unlock(lock_name(table))
        scheduled = columns.status == status_literal(MessageStatus.SCHEDULED)
        due = (
            select(columns.id)
            .where(scheduled, columns.scheduled_at <= adapter.statement_clock())
            .order_by(columns.scheduled_at, columns.id)
            .limit(bindparam("at_most", type_=Integer()))
        )
        # Ready since it was due: messages of one key get their numbers in this order.
        free = [(columns.status, status_literal(MessageStatus.NEW)), (columns.ready_at, columns.scheduled_at)]
        self._promote = adapter.take(table, adapter.by_index(due, table, index), free, [raw(columns.id)])
        following = select(adapter.seconds_until(columns.scheduled_at)).where(scheduled)
        first = following.order_by(columns.scheduled_at).limit(literal_column("1"))
        self._following = adapter.by_index(first, table, index)
        self._waiting: list[AnySelect] = [_first(table, columns.status == status_literal(MessageStatus.NEW))]
        if keys is not None:
            ready = keys.c.status == status_literal(KeyStatus.READY)
            self._waiting.append(_first(keys, ready & (keys.c.due_at <= adapter.statement_clock())))

    def promote(self, connection: Connection, limit: int) -> int:
        """Free up to `limit` messages whose time has come; 0, too, while another relay does it."""
        if self._lock is not None and not connection.scalar(self._lock):
            return 0
        try:
            return len(take(connection, self._promote, {"at_most": limit}))
        finally:
            if self._unlock is not None:
                # On a broken connection this fails too, and must not hide what broke it; the lock is gone then.
                with contextlib.suppress(SQLAlchemyError):
                    connection.execute(self._unlock)

    def next_due(self, connection: Connection) -> float | None:
        """Seconds until the next message is due, negative if one is; None if none is scheduled."""
        seconds = connection.scalar(self._following)
        return None if seconds is None else float(seconds)

    def anything_due(self, connection: Connection) -> bool:
        """Whether a message or a key is free to be claimed."""
        return any(connection.execute(statement).first() is not None for statement in self._waiting)

    def prune(self, connection: Connection, status: MessageStatus, older_than: timedelta, limit: int) -> int:
        """Delete up to `limit` messages that were SENT, or FAILED, longer ago; how many."""
        return prune(connection, self._table, status, older_than, limit, ended="sent_at")


def _first(table: Table, condition: object) -> AnySelect:
    return select(table.c.id).where(condition).limit(literal_column("1"))  # type: ignore[arg-type]
