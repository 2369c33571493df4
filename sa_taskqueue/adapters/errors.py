"""What a driver's error means for the library, whatever the driver calls it."""

from __future__ import annotations

import enum
import re


class ErrorKind(enum.Enum):
    """The kinds of database errors that the library treats differently."""

    DEADLOCK = "deadlock"
    SERIALIZATION = "serialization"
    LOCK_TIMEOUT = "lock_timeout"
    BUSY = "busy"
    DISCONNECT = "disconnect"
    UNIQUE = "unique"
    NULL = "null"
    """A NULL for a column that takes none."""
    MISSING_TABLE = "missing_table"
    MISSING_COLUMN = "missing_column"
    READ_ONLY = "read_only"
    NO_PRIVILEGE = "no_privilege"
    DISK_FULL = "disk_full"
    UNREADABLE = "unreadable"
    """A stored value that the driver cannot turn into a Python object."""
    OTHER = "other"

    @property
    def retryable(self) -> bool:
        """Whether the same transaction may succeed when it is simply run again."""
        return self in _RETRYABLE


_RETRYABLE = frozenset({ErrorKind.DEADLOCK, ErrorKind.SERIALIZATION, ErrorKind.LOCK_TIMEOUT, ErrorKind.BUSY})


def driver_error(error: BaseException) -> BaseException:
    """The exception of the driver inside SQLAlchemy's wrapper, or the error itself."""
    original = getattr(error, "orig", None)
    return original if isinstance(original, BaseException) else error


def sqlstate(error: BaseException) -> str | None:
    """The five characters of SQLSTATE, as psycopg, psycopg2 and asyncpg (through SQLAlchemy) carry them."""
    for name in ("sqlstate", "pgcode"):
        value = getattr(error, name, None)
        if isinstance(value, str):
            return value
    return None


def error_number(error: BaseException) -> int | None:
    """The server's error number, as the drivers for MySQL and MariaDB carry it: the first argument."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    if error.args and isinstance(error.args[0], int):
        return error.args[0]
    return None


_COLUMN = re.compile(r"""(?:\bcolumn:? |\bcolumn named? )(?!named? )["'`]?(?:\w+\.)*([^"'`\s.]+)""", re.IGNORECASE)
_IDENTIFIER = re.compile(r'"([^"]+)": invalid identifier')


def missing_column(error: BaseException) -> str:
    """The name in a message about a MISSING_COLUMN, which the drivers do not give apart from its text."""
    message = str(driver_error(error))
    found = _IDENTIFIER.search(message) or _COLUMN.search(message)
    return found[1] if found else "that the statement names"
