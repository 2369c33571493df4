"""Waiting for a row's lock in the caller's transaction, but not for as long as the server would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.shapes import AnySelect, PatienceShape
from sa_taskqueue.store.savepoints import savepoint


def lock_within(
    connection: Connection, adapter: Adapter, shape: PatienceShape, lock: AnySelect, ids: Sequence[Any], *, seconds: int
) -> bool:
    """Whether the rows were locked in that time. The transaction goes on, and its setting is as it was before."""
    before = connection.execute(shape.read).scalar_one()
    try:
        with savepoint(connection):
            connection.execute(shape.set, {"patience": shape.of_seconds(seconds)})
            connection.execute(lock, {"ids": ids})
    except DBAPIError as error:
        if adapter.classify(error) is not ErrorKind.LOCK_TIMEOUT:
            raise
        got = False
    else:
        got = True
    connection.execute(shape.set, {"patience": before})
    return got
