"""Breaks a connection whose server accepts bytes and never answers: no driver setting ends such a call.

Measured 2026-11-30 with psycopg: tcp_user_timeout, keepalives and statement_timeout all passed without an effect.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any

from sqlalchemy import Connection


class Breaker:
    """Knows the socket from the start: mysqlclient refuses even `fileno()` while another thread waits in it."""

    def __init__(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        self._lock = threading.Lock()
        self._transport: Any = getattr(driver, "_transport", None) or getattr(
            getattr(driver, "_writer", None), "transport", None
        )
        self._socket = _duplicate(driver) if self._transport is None else None

    def cut(self) -> bool:
        """Shut the socket down, so that a call waiting for it fails. False: there is none that we can reach.

        For a sync driver from any thread; for an async driver from the thread of its loop.
        """
        if self._transport is not None:
            self._transport.abort()
            return True
        with self._lock:
            if self._socket is None:
                return False
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            return True

    def close(self) -> None:
        """Let go of the socket, after the connection was closed."""
        with self._lock:
            own, self._socket = self._socket, None
        if own is not None:
            own.close()


def _duplicate(driver: Any) -> socket.socket | None:
    """A second handle on the driver's socket: `fileno()` on psycopg and mysqlclient, `_sock` on PyMySQL."""
    fileno = getattr(driver, "fileno", None) or getattr(getattr(driver, "_sock", None), "fileno", None)
    return socket.socket(fileno=os.dup(fileno())) if fileno is not None else None
