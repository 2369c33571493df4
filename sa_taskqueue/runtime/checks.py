"""What a worker refuses at its start, each with a named error that says what to do."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.pool import NullPool, Pool, QueuePool

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import (
    AutocommitEngine,
    DatabaseBusy,
    InMemoryDatabase,
    InvalidSetting,
    QueueDatabaseError,
    ReadOnlyDatabase,
    ServerUnreachable,
)

UNLIMITED = 1_000_000

NETWORK_FILE_SYSTEMS = frozenset(
    {"afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"}
)
"""SQLite's own documentation warns of them: their locks are often not real ones, and WAL needs shared memory."""


def pool_capacity(pool: Pool) -> int:
    """How many connections the pool gives out at once."""
    if isinstance(pool, NullPool):
        return UNLIMITED
    if not isinstance(pool, QueuePool):
        return 1
    overflow = pool._max_overflow  # noqa: SLF001  there is no public name for it
    return UNLIMITED if overflow < 0 or pool.size() == 0 else pool.size() + overflow


def refuse_small_pool(pool: Pool, needed: int) -> None:
    """InvalidSetting if the worker would wait for ever for its own connections."""
    capacity = pool_capacity(pool)
    if capacity < needed:
        raise pool_too_small(capacity, needed)


def pool_too_small(capacity: int, needed: int) -> InvalidSetting:
    """The error for a pool that cannot serve the connections held at once."""
    allowed = f"at least {needed}, as the worker holds so many connections at once: create_engine(pool_size={needed})"
    return InvalidSetting(setting="pool_size + max_overflow", value=capacity, allowed=allowed)


def refuse_autocommit(connection: Connection) -> None:
    """AutocommitEngine if statements are committed one by one: a claim or an enqueue could not be undone."""
    if _declared_autocommit(connection) or _driver_autocommit(connection):
        raise AutocommitEngine(engine=_shown(connection.engine.url))


def refuse_memory(connection: Connection, adapter: Adapter) -> None:
    """InMemoryDatabase if every connection of the engine sees a database of its own."""
    if adapter.private_to_connection(connection.engine.url):
        raise InMemoryDatabase(url=_shown(connection.engine.url))


def refuse_network_file(connection: Connection, adapter: Adapter) -> None:
    """InvalidSetting for a file on a network file system, whose locks do not keep two machines apart."""
    file = adapter.file_of(connection.engine.url)
    if file is None:
        return
    system = file_system_of(os.path.realpath(file), _mounts())
    if system in NETWORK_FILE_SYSTEMS:
        raise InvalidSetting(setting="the SQLite file", value=f"{file}, on {system}", allowed="on a local disk")


def file_system_of(path: str, mounts: str) -> str:
    """The type of the file system that the path is on, by the lines of /proc/mounts; "" if none of them holds it."""
    found, depth = "", -1
    for line in mounts.splitlines():
        _, folder, system, *_ = line.split(" ")
        folder = folder.replace("\\040", " ").rstrip("/")
        if len(folder) >= depth and (path == folder or path.startswith(f"{folder}/")):
            found, depth = system, len(folder)
    return found


def _mounts() -> str:
    """Linux's table of what is mounted; nothing elsewhere, where the file is taken on trust."""
    try:
        return Path("/proc/mounts").read_text(errors="replace")
    except OSError:
        return ""


def not_started(engine: Engine, error: Exception) -> QueueDatabaseError:
    """The error for a start that got no connection, or one whose first statements (events of the engine) failed."""
    adapter = adapter_for(engine.dialect)
    kind = adapter.classify(error)
    if kind is ErrorKind.READ_ONLY:
        return ReadOnlyDatabase()
    if kind is ErrorKind.BUSY or (adapter.single_writer and isinstance(error, TimeoutError)):
        return DatabaseBusy()
    reason = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return ServerUnreachable(url=_shown(engine.url), reason=reason)


def _shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _declared_autocommit(connection: Connection) -> bool:
    """AUTOCOMMIT set for the engine or its connections, which hides from the driver until a transaction begins."""
    return connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"


def _driver_autocommit(connection: Connection) -> bool:
    """What the driver says, in a transaction begun as a session's would be (events of the engine may send BEGIN)."""
    with connection.begin():
        driver = connection.connection.driver_connection
        in_transaction = getattr(driver, "in_transaction", False)
        return commits_each_statement(connection) and in_transaction is not True


def commits_each_statement(connection: Connection) -> bool:
    """The driver's autocommit setting, without a round trip; SQLAlchemy 2.0.40 has no `detect_autocommit_setting`."""
    dbapi_connection = connection.connection.dbapi_connection
    detect = getattr(connection.dialect, "detect_autocommit_setting", None)
    if detect is not None:
        try:
            return bool(detect(dbapi_connection))
        except NotImplementedError:
            pass
    autocommit = getattr(dbapi_connection, "autocommit", None)
    if isinstance(autocommit, bool):
        return autocommit
    # asyncmy's own connection has it; SQLAlchemy's before 2.0.42 does not pass it on.
    for each in (dbapi_connection, connection.connection.driver_connection):
        get_autocommit = getattr(each, "get_autocommit", None)
        if get_autocommit is not None:
            return bool(get_autocommit())
    return getattr(dbapi_connection, "isolation_level", "") is None and hasattr(dbapi_connection, "in_transaction")
