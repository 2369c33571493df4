"""Breaks a connection whose server accepts bytes and never answers: no driver setting ends such a call.

Measured 2026-11-30 with psycopg: tcp_user_timeout, keepalives and statement_timeout all passed without an effect.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from sqlalchemy import Connection


def cut(connection: Connection) -> bool:
    """Shut the connection's socket down, so that a call waiting for it fails. False: it has none that we can reach.

    For a sync driver from any thread; for an async driver from the thread of its loop.
    """
    if connection.closed or connection.invalidated:
        return False
    driver: Any = connection.connection.driver_connection
    transport = getattr(driver, "_transport", None)
    if transport is not None:
        transport.abort()
        return True
    descriptor = _descriptor(driver)
    if descriptor is None:
        return False
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
    return True


def _descriptor(driver: Any) -> int | None:
    """The socket's file descriptor: `fileno()` on psycopg and mysqlclient, `_sock` on PyMySQL."""
    fileno = getattr(driver, "fileno", None) or getattr(getattr(driver, "_sock", None), "fileno", None)
    if fileno is None:
        return None
    try:
        number = fileno()
    except Exception:  # noqa: BLE001  every driver has its own error for a connection that is already closed
        return None
    return number if isinstance(number, int) and number >= 0 else None
