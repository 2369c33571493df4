"""A warning where workers of strategies that do not see each other serve one table."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sa_taskqueue.store.session_locks import SessionLocks

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.store import TaskStore

logger = logging.getLogger("sa_taskqueue.reservation")

IN_ROWS = frozenset({"lease", "row-lock"})
"""Strategies that go together: a claim of either skips what the other holds."""


def warn_of_mixed_use(connection: Connection, store: TaskStore, adapter: Adapter, strategy: str) -> None:
    """By what others leave behind: a task that is RUNNING, a live reservation, the lock of `mark`. At a worker's start.

    A row lock leaves nothing behind that others could see, but its worker sees what theirs do.
    """
    if strategy not in IN_ROWS and store.any_running(connection):
        _warn(store, "leases or row locks", strategy)
    if strategy != "reservation-table" and store.any_reserved(connection):
        _warn(store, "reservation-table", strategy)
    if strategy != "advisory-lock" and _marked(connection, store, adapter):
        _warn(store, "advisory-lock", strategy)


def mark(connection: Connection, locks: SessionLocks) -> None:
    """Show that a worker uses locks of the server's, for as long as the connection lives. One of them is enough."""
    locks.take(connection, [locks.table_key(locks.session(connection))])


def _marked(connection: Connection, store: TaskStore, adapter: Adapter) -> bool:
    shape = adapter.session_locks()
    if shape is None:
        return False
    locks = SessionLocks(store.table, shape)
    key = locks.table_key(locks.session(connection))
    if not locks.take(connection, [key]).keys:
        return True
    locks.free(connection, [key])
    return False


def _warn(store: TaskStore, others: str, strategy: str) -> None:
    logger.warning(
        "tasks of %s are held by %s; together with %s a task may run twice, though only one end of it is accepted. "
        "Use one strategy for all workers of a queue",
        store.table.fullname,
        others,
        strategy,
    )
