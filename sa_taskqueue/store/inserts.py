"""Many tasks at once: batched INSERT, or COPY where the server and the driver have it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import Connection, Table, insert

from sa_taskqueue.models.columns import COLUMNS
from sa_taskqueue.store.copying import COPY_THRESHOLD, copy_rows, takes_copy
from sa_taskqueue.store.new_rows import NewTask, each_row, row_values
from sa_taskqueue.store.unique import insert_all_unique


def insert_many(connection: Connection, table: Table, tasks: Sequence[NewTask]) -> list[uuid.UUID]:
    """Store the tasks and return their ids in the same order; for a duplicate the id of the task that holds the key.

    Raises `DuplicateTask` or `TaskRunning` where a task asks for it.
    """
    plain = [task for task in tasks if task.unique_hash is None]
    if plain:
        _insert_plain(connection, table, plain)
    keyed = [task for task in tasks if task.unique_hash is not None]
    stored = dict(zip((task.id for task in keyed), insert_all_unique(connection, table, keyed), strict=True))
    return [stored[task.id].id if task.id in stored else task.id for task in tasks]


def _insert_plain(connection: Connection, table: Table, tasks: Sequence[NewTask]) -> None:
    if len(tasks) >= COPY_THRESHOLD and takes_copy(connection, table, COLUMNS):
        copy_rows(connection, table, each_row(connection, tasks))
    else:
        connection.execute(insert(table), row_values(connection, tasks))
