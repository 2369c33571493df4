"""One task table with a store, and short ways to fill it and to look at it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Row, Table, insert, select, update

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.ids import new_id
from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Pair, TaskStore


class Bench:
    """`engine` runs at the isolation level of the workers."""

    def __init__(self, engine: Engine, table: Table, adapter: Adapter | None = None) -> None:
        self.engine = engine
        self.table = table
        self.adapter = adapter or adapter_for(engine.dialect)
        self.store = TaskStore(table, self.adapter)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            self.adapter.begin(connection)
            yield connection

    def add(self, count: int = 1, **values: Any) -> list[UUID]:
        """Store tasks; NEW in the queue `mail` unless said otherwise. Their ids, in the order of storing."""
        rows = [
            {"id": new_id(), "name": "send", "queue": "mail", "body": '{"to": "ann"}', **values} for _ in range(count)
        ]
        with self.transaction() as connection:
            connection.execute(insert(self.table), rows)
        return [row["id"] for row in rows]

    def change(self, ids: Sequence[UUID], **values: Any) -> None:
        with self.transaction() as connection:
            connection.execute(update(self.table).where(self.table.c.id.in_(ids)).values(**values))

    def claim(self, limit: int = 10, *, queue: str = "mail", lease: float = 60.0, by: str = "worker") -> list[Claimed]:
        with self.transaction() as connection:
            return self.store.claim(connection, queue, limit, lease=lease, by=by)

    def row(self, task: UUID) -> Row[Any]:
        with self.transaction() as connection:
            return connection.execute(select(self.table).where(self.table.c.id == task)).one()

    def statuses(self) -> dict[UUID, Status]:
        with self.transaction() as connection:
            rows = connection.execute(select(self.table.c.id, self.table.c.status)).all()
        return {task: Status(status) for task, status in rows}

    def count(self, status: Status) -> int:
        return list(self.statuses().values()).count(status)


def pairs(claimed: Sequence[Claimed]) -> list[Pair]:
    return [(task.id, task.epoch) for task in claimed]
