"""Which priorities have rows that wait for their time, without reading all of these rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, func, select

from sa_taskqueue.adapters.base import status_literal
from sa_taskqueue.states import Status


def walk_priorities(table: Table, seconds_until: Callable[[ColumnElement[Any]], ColumnElement[float]]) -> Select[Any]:
    """From one priority to the next by index probes: for databases whose GROUP BY reads every row.

    A recursive CTE, one probe per priority in use, instead of one index entry per SCHEDULED row.
    """
    waiting = table.c.status == status_literal(Status.SCHEDULED)
    first = select(func.min(table.c.priority).label("priority")).where(waiting)
    used = first.cte("used", recursive=True)
    following = select(func.min(table.c.priority)).where(waiting, table.c.priority > used.c.priority).scalar_subquery()
    used = used.union_all(select(following).where(used.c.priority.is_not(None)))
    earliest = (
        select(func.min(table.c.scheduled_at)).where(waiting, table.c.priority == used.c.priority).scalar_subquery()
    )
    return (
        select(used.c.priority, seconds_until(earliest).label("seconds"))
        .where(used.c.priority.is_not(None))
        .order_by(used.c.priority)
    )
