"""A savepoint that does not hide why it was rolled back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


@contextlib.contextmanager
def savepoint(connection: Connection) -> Iterator[None]:
    """As `Connection.begin_nested`, but an error of the block is raised as it is when the savepoint is gone.

    After a deadlock MySQL and MariaDB have rolled back the whole transaction, and refuse to go back to its savepoints
    with an error (1305) that nobody would repeat the transaction for.
    """
    nested = connection.begin_nested()
    try:
        yield
    except BaseException:
        with contextlib.suppress(DBAPIError):
            nested.rollback()
        raise
    nested.commit()
