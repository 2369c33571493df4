"""A strategy as a worker drives it, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, Engine, Table

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.reservation import Reservation
from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Renewed, Settlement, TaskStore
from tests.models import Base

CRASH_NOTES = Base.metadata.tables["task_crash_note"]


class Holder:
    """Claims on a connection of its own in AUTOCOMMIT, finishes on others."""

    def __init__(
        self,
        engine: Engine,
        tasks: Table,
        reserved: Table,
        reservation: Reservation,
        *,
        lease: float = 60.0,
        by: str = "holder",
    ) -> None:
        self._engine = engine
        self._apart = engine.execution_options(isolation_level="AUTOCOMMIT")
        self.reservation = reservation
        self.connection = self._apart.connect()
        adapter = adapter_for(self.connection.dialect)
        self.store = TaskStore(tasks, adapter, CRASH_NOTES, reservations=reserved)
        reservation.bind(self.store, adapter, lease=lease, by=by)

    def claim(self, limit: int) -> list[Claimed]:
        return self.reservation.claim(self.connection, "default", limit)

    def complete(self, tasks: Sequence[Claimed]) -> set[UUID]:
        """Finish, and forget, as the finisher does."""
        with self._engine.begin() as connection:
            ends = [Settlement(task.id, task.epoch, Status.COMPLETED) for task in tasks]
            changed = self.reservation.settle(connection, ends)
        self.reservation.let_go([task.id for task in tasks])
        return changed

    def release(self, tasks: Sequence[Claimed]) -> set[UUID]:
        with self._engine.begin() as connection:
            changed = self.reservation.release(connection, [(task.id, task.epoch) for task in tasks])
        self.reservation.let_go([task.id for task in tasks])
        return changed

    def renew(self, tasks: Sequence[Claimed], lease: float = 60.0) -> Renewed:
        with self._apart.connect() as connection:
            return self.reservation.renew(connection, [(task.id, task.epoch) for task in tasks], lease=lease)

    def reconnect(self) -> Connection:
        """As the worker's lane does after it has lost its connection."""
        self.connection.invalidate()
        self.connection.close()
        self.connection = self._apart.connect()
        return self.connection

    def close(self) -> None:
        self.connection.invalidate()
        self.connection.close()
