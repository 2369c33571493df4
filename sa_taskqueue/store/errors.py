"""The library's names for what a database refuses about a table of tasks.

Only errors that somebody has to cure get a name. What may pass when the transaction is run again (deadlock,
serialization failure, lock timeout, lost connection) stays SQLAlchemy's, so that a caller's loop around it works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Dialect, Engine, Table
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind, driver_error, missing_column
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import (
    DatabaseBusy,
    InsufficientPrivilege,
    QueueDatabaseError,
    ReadOnlyDatabase,
    SchemaMissing,
    SchemaOutdated,
    StorageFull,
)


@contextmanager
def named_errors(table: Table, engine: Engine) -> Iterator[None]:
    """Raise the named error for a statement of the block, all of which are about the table."""
    try:
        yield
    except DBAPIError as error:
        raise_named(error, table, engine)
        raise


def raise_named(error: DBAPIError, table: Table, engine: Engine) -> None:
    """Raise the named error from this one; return if it has no name."""
    named = _named(error, table, engine)
    if named is not None:
        raise named from error


def writes_to(error: DBAPIError, table: Table, dialect: Dialect) -> bool:
    """Whether the statement that failed is one that writes to the table."""
    name = re.escape(dialect.identifier_preparer.quote(table.name))
    written = rf"(?:INSERT INTO|UPDATE|DELETE FROM) (?:[^\s(]*\.)?{name}\s"
    return re.match(written, error.statement or "") is not None


def _named(error: DBAPIError, table: Table, engine: Engine) -> QueueDatabaseError | None:
    match adapter_for(engine.dialect).classify(error):
        case ErrorKind.MISSING_TABLE:
            return SchemaMissing(table=table.fullname)
        case ErrorKind.MISSING_COLUMN:
            return SchemaOutdated(table=table.fullname, column=missing_column(error))
        case ErrorKind.READ_ONLY:
            return ReadOnlyDatabase()
        case ErrorKind.NO_PRIVILEGE:
            user = engine.url.username or "of the connection"
            reason = str(driver_error(error)).strip()
            return InsufficientPrivilege(user=user, table=table.fullname, reason=reason)
        case ErrorKind.DISK_FULL:
            return StorageFull()
        case ErrorKind.BUSY:
            return DatabaseBusy()
        case _:
            return None
