"""CockroachDB: one atomic UPDATE ... RETURNING per step, no SKIP LOCKED, SERIALIZABLE, 40001 tried again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sqlalchemy import BigInteger, Dialect, Table, bindparam, select

from sa_taskqueue.adapters.base import Adapter, at_least, changed, status_literal
from sa_taskqueue.adapters.errors import ErrorKind, driver_error, sqlstate
from sa_taskqueue.adapters.postgresql import PostgreSQLTypes, row_arrays
from sa_taskqueue.adapters.shapes import (
    AnySelect,
    AssignFrom,
    Assignments,
    Columns,
    HeldReturning,
    HeldShape,
    Inputs,
    ReturningClaim,
    TakeShape,
)
from sa_taskqueue.exceptions import UnsupportedDatabase
from sa_taskqueue.states import Status


class CockroachDB(PostgreSQLTypes):
    """CockroachDB 22.2 and later (DELETE ... USING). Types, clock and error codes are PostgreSQL's."""

    name: ClassVar[str] = "cockroachdb"
    copies: ClassVar[bool] = False
    changes_in_ctes: ClassVar[bool] = False
    worker_isolation: ClassVar[str | None] = "SERIALIZABLE"

    def derivation(self) -> None:
        """It has not all of the functions by which PostgreSQL makes ids."""

    def take(self, table: Table, pick: AnySelect, assignments: Assignments, columns: Columns) -> TakeShape:
        # The conditions once more: what the inner read saw may have changed before the row is written.
        still = pick.whereclause
        change = changed(table, assignments).where(table.c.id.in_(pick))
        return ReturningClaim((change if still is None else change.where(still)).returning(*columns))

    def held(
        self,
        table: Table,
        assign: AssignFrom | None,
        inputs: Inputs,
        *,
        wait: bool = True,
        status: Status = Status.RUNNING,
    ) -> HeldShape:
        brought = row_arrays(
            "brought", {"id": self.id_type(), "epoch": BigInteger(), **inputs}, id="ids", epoch="epochs"
        )
        change = changed(table, assign({name: brought.c[name] for name in inputs}) if assign else None).where(
            table.c.id == brought.c.id,
            table.c.epoch == brought.c.epoch,
            table.c.status == status_literal(status),
        )
        return HeldReturning(change.returning(table.c.id), tuple(inputs))

    def lock(self, table: Table) -> AnySelect | None:
        these = table.c.id.in_(bindparam("ids", expanding=True))
        return select(table.c.id).where(these).order_by(table.c.id).with_for_update()

    def try_lock(self, name: str) -> AnySelect | None:
        return None  # pg_try_advisory_xact_lock is there, and always says yes

    def notify(self, channel: str, payload: str) -> AnySelect | None:
        return None

    def classify_driver(self, error: BaseException) -> ErrorKind:
        # 40003: the connection to the node that committed was lost within the cluster, and nobody knows how it ended.
        if sqlstate(driver_error(error)) == "40003":
            return ErrorKind.DISCONNECT
        return super().classify_driver(error)

    def worker_settings(self) -> Sequence[str]:
        return ("SET lock_timeout = '2s'", "SET statement_timeout = '30s'")


def cockroachdb(dialect: Dialect) -> Adapter:
    """The adapter for the server behind the dialect."""
    adapter = CockroachDB(dialect)
    if at_least(adapter.version, 22, 2):
        return adapter
    version = ".".join(map(str, adapter.version or ()))
    raise UnsupportedDatabase(server="CockroachDB", version=version, floor="22.2")
