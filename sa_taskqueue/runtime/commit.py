"""One store operation as one transaction, which tells a failed operation from a COMMIT nobody answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import CommitUnknown

P = ParamSpec("P")
R = TypeVar("R")


def transact(
    connection: Connection,
    adapter: Adapter,
    operation: Callable[Concatenate[Connection, P], R],
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    """Begin, run the operation, commit. CommitUnknown: the connection broke after COMMIT was sent."""
    try:
        connection.begin()  # first, because an engine's own event may send the BEGIN
        adapter.begin(connection)
        result = operation(connection, *args, **kwargs)
    except BaseException:
        undo(connection)
        raise
    try:
        connection.commit()
    except (asyncio.CancelledError, OSError) as error:  # an async driver may let the socket's own error through
        raise CommitUnknown from error
    except DBAPIError as error:
        undo(connection)
        if adapter.classify(error) is ErrorKind.DISCONNECT:
            raise CommitUnknown from error
        raise
    return result


def undo(connection: Connection) -> None:
    """Roll back; a server or SQLite that has already done so (disk full, lost connection) refuses, which is as good."""
    try:
        connection.rollback()
    except DBAPIError:
        with contextlib.suppress(DBAPIError):
            connection.invalidate()
