"""A warning that strategies share which write no row of the task."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sa_taskqueue.store import TaskStore

logger = logging.getLogger("sa_taskqueue.reservation")


def warn_of_mixed_use(connection: Connection, store: TaskStore, strategy: str) -> None:
    """The rows cannot tell two such strategies from each other, but a task that is RUNNING is held by another one."""
    if store.unmarked.any_running(connection):
        logger.warning(
            "tasks of %s are held by leases or row locks; together with %s a task may run twice, though only one end "
            "of it is accepted. Use one strategy for all workers of a queue",
            store.table.fullname,
            strategy,
        )
