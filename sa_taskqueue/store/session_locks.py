"""Locks that belong to a connection: taken, freed and looked at by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Table

from sa_taskqueue.adapters.shapes import SessionLockShape


class Session(NamedTuple):
    """The server's number for a connection, and the schema in which it finds a table that is not qualified."""

    number: int
    schema: str


class Taken(NamedTuple):
    """What one attempt at many keys brought: the keys got, and the connections that answered for each."""

    keys: set[Any]
    sessions: set[int]


class SessionLocks:
    """The locks of the tasks of one table. A key has 64 bits: a collision makes a free task look taken, no more."""

    def __init__(self, table: Table, shape: SessionLockShape) -> None:
        self._table = table
        self._shape = shape

    def session(self, connection: Connection) -> Session:
        """Which connection of the server this is."""
        number, schema = connection.execute(self._shape.session).one()
        return Session(number, schema)

    def key(self, task: UUID, session: Session) -> Any:
        """The same for all workers, whether their model names the schema or the connection does."""
        return self._shape.key(f"{self._table.schema or session.schema}.{self._table.name}:{task}")

    def table_key(self, session: Session) -> Any:
        """The key of the table itself, which no task has."""
        return self._shape.key(f"{self._table.schema or session.schema}.{self._table.name}")

    def take(self, connection: Connection, keys: Sequence[Any]) -> Taken:
        """Take what is free, without waiting. The keys are brought along: the function runs on no other row."""
        rows = connection.execute(self._shape.take, {"packed": self._shape.pack(keys)}).fetchall()
        return Taken({key for key, got, _ in rows if got}, {session for _, _, session in rows})

    def free(self, connection: Connection, keys: Sequence[Any]) -> None:
        """Free the keys; one that is not held is passed over."""
        connection.execute(self._shape.free, {"packed": self._shape.pack(keys)}).fetchall()

    def taken(self, connection: Connection, keys: Sequence[Any], session: Session) -> set[Any]:
        """Those keys that the connection ``session`` holds; may be asked on another connection."""
        values = {"packed": self._shape.pack(keys), "session": session.number}
        return set(connection.execute(self._shape.taken, values).scalars())
