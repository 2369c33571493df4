"""Breaks a connection whose server accepts bytes and never answers: no driver setting ends such a call."""

from __future__ import annotations

import contextlib
import os
import socket

from sqlalchemy import Connection


def cut(connection: Connection) -> bool:
    """Shut the connection's socket down from another thread, so that a call waiting for it fails. False: it has none."""
    descriptor = _descriptor(connection)
    if descriptor is None:
        return False
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
    return True


def _descriptor(connection: Connection) -> int | None:
    """The file descriptor of the driver's socket: `fileno()` on psycopg and mysqlclient, `_sock` on PyMySQL."""
    if connection.closed or connection.invalidated:
        return None
    driver = connection.connection.driver_connection
    fileno = getattr(driver, "fileno", None) or getattr(getattr(driver, "_sock", None), "fileno", None)
    if fileno is None:
        return None
    try:
        number = fileno()
    except Exception:  # every driver has its own error for a connection that is already closed
        return None
    return number if isinstance(number, int) and number >= 0 else None
