"""How many tasks there are, and how long the oldest have waited."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, select

from sa_taskqueue.states import Status
from sa_taskqueue.store.new_rows import database_now
from sa_taskqueue.store.reading import converter, raw, shown


class QueueStatistics(NamedTuple):
    """One queue. The ages are in seconds by the database's clock, None where there is no such task.

    `oldest_due` is how long the oldest NEW task has been due; `oldest_expired` is how long ago the first of the leases
    ended that nobody has taken over. Both grow when no worker serves the queue.
    """

    queue: str
    counts: dict[Status, int]
    oldest_due: float | None
    oldest_expired: float | None

    @property
    def total(self) -> int:
        """The tasks of the queue in all statuses."""
        return sum(self.counts.values())


def statistics(connection: Connection, table: Table) -> list[QueueStatistics]:
    """One entry per queue, by name. Reads the whole table, or an index of it."""
    columns = table.c
    group = (columns.queue, columns.status)
    figures = (func.count(), func.min(raw(columns.ready_at)), func.min(raw(columns.reserved_until)))
    to_moment = converter(columns.ready_at.type, connection.dialect)
    rows = [
        (queue, status, count, shown(to_moment, ready_at), shown(to_moment, reserved_until))
        for queue, status, count, ready_at, reserved_until in connection.execute(
            select(*group, *figures).group_by(*group).order_by(columns.queue)
        )
    ]
    now = database_now(connection)
    queues = dict.fromkeys(row[0] for row in rows)
    return [_of_queue(queue, [row for row in rows if row[0] == queue], now) for queue in queues]


def _of_queue(queue: str, rows: list[Any], now: dt.datetime) -> QueueStatistics:
    counts: dict[Status, int] = {}
    oldest_due = oldest_expired = None
    for _, status, count, ready_at, reserved_until in rows:
        counts[status] = count
        if status == Status.NEW and ready_at is not None:
            oldest_due = max(0.0, (now - ready_at).total_seconds())
        elif status == Status.RUNNING and reserved_until is not None and reserved_until < now:
            oldest_expired = (now - reserved_until).total_seconds()
    return QueueStatistics(queue, counts, oldest_due, oldest_expired)
