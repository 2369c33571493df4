"""Refuse connections on which "stored if and only if committed" cannot hold.

Checked at the first flush with tasks, on the connection itself: `Connection.get_isolation_level()` answers the server's
default on a driver that commits each statement (measured 2026-11-30), so the driver's own switch is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sa_taskqueue.exceptions import AutocommitEngine, SavepointWithoutBegin
from sa_taskqueue.runtime.checks import commits_each_statement

if TYPE_CHECKING:
    from sqlalchemy import Connection


def refuse_unsafe(connection: Connection) -> None:
    """Raise `AutocommitEngine` or `SavepointWithoutBegin` when a rollback would not undo what is written here."""
    driver: Any = connection.connection.dbapi_connection
    in_transaction = getattr(driver, "in_transaction", None)
    if in_transaction is None:
        in_transaction = getattr(connection.connection.driver_connection, "in_transaction", None)
    if isinstance(in_transaction, bool):
        _refuse_sqlite_style(connection, in_transaction)
    elif commits_each_statement(connection):
        raise AutocommitEngine(engine=connection.engine.url.render_as_string())


def _refuse_sqlite_style(connection: Connection, in_transaction: bool) -> None:
    """Judge a driver that tells whether BEGIN was sent.

    A driver left to itself sends BEGIN before the first write only. A SAVEPOINT before that is the outermost
    transaction, and its RELEASE commits: the outer rollback comes too late. Refused even where a write came first:
    else whether it works would depend on what the caller happened to do before.
    """
    if _driver_begins_late(connection):
        if connection.in_nested_transaction():
            raise SavepointWithoutBegin
    elif not in_transaction:
        raise AutocommitEngine(engine=connection.engine.url.render_as_string())


def _driver_begins_late(connection: Connection) -> bool:
    """Tell whether BEGIN is left to Python's sqlite3 (its legacy transaction control, the default)."""
    driver: Any = connection.connection.driver_connection
    if isinstance(getattr(driver, "autocommit", None), bool):  # Python 3.12+, explicit transaction control
        return False
    return getattr(driver, "isolation_level", None) is not None
