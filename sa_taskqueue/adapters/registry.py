"""Which adapter serves a dialect and server; how third parties add theirs (entry points ``sa_taskqueue.adapters``)."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from sqlalchemy import ColumnElement, Dialect

from sa_taskqueue.adapters.base import Adapter, at_least
from sa_taskqueue.adapters.mariadb import MariaDB
from sa_taskqueue.adapters.mysql import MySQL, MySQLTypes
from sa_taskqueue.adapters.postgresql import PostgreSQL, PostgreSQLTypes
from sa_taskqueue.adapters.sqlite import SQLite

AdapterFactory = Callable[[Dialect], Adapter]

GROUP = "sa_taskqueue.adapters"

logger = logging.getLogger(GROUP)


def adapter_for(dialect: Dialect) -> Adapter:
    """The adapter for this dialect and the server behind it; the portable one where nobody knows the dialect."""
    version = getattr(dialect, "server_version_info", None)
    key = (dialect.name, bool(getattr(dialect, "is_mariadb", False)), tuple(version) if version else None)
    found = _adapters.get(key)
    if found is None:
        found = _adapters[key] = factory_for(dialect.name)(dialect)
    return found


def factory_for(name: str) -> AdapterFactory:
    """What makes the adapter of that dialect name: a registered one first, then the library's own."""
    return _registered().get(name) or _FACTORIES.get(name, Adapter)


def index_options(holds: ColumnElement[bool] | None) -> dict[str, Any]:
    """The options of an index over only the rows for which ``holds``, where the database has partial indexes."""
    if holds is None:
        return {}
    return {"postgresql_where": holds, "sqlite_where": holds, "mssql_where": holds}


def table_options() -> dict[str, Any]:
    """The options of a queue table: on MySQL and MariaDB InnoDB, all of Unicode, text compared as it is written."""
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    return {f"{dialect}_{key}": value for dialect in ("mysql", "mariadb") for key, value in options.items()}


def _postgresql(dialect: Dialect) -> Adapter:
    return _from_version(PostgreSQL(dialect), PostgreSQLTypes(dialect), 9, 5)


def _mysql(dialect: Dialect) -> Adapter:
    portable = MySQLTypes(dialect)
    if getattr(dialect, "is_mariadb", False):
        return _from_version(MariaDB(dialect), portable, 10, 6)
    return _from_version(MySQL(dialect), portable, 8)


def _from_version(adapter: Adapter, portable: Adapter, *floor: int) -> Adapter:
    """The adapter from this version on, else the portable statements; said once, as adapters are kept."""
    if at_least(adapter.version, *floor):
        return adapter
    logger.warning(
        "%s %s has no SKIP LOCKED: tasks are claimed one by one, which is slower; %s or newer is better",
        adapter.name,
        ".".join(map(str, adapter.version or ())),
        ".".join(map(str, floor)),
    )
    return portable


_FACTORIES: dict[str, AdapterFactory] = {
    "mariadb": _mysql,
    "mysql": _mysql,
    "postgresql": _postgresql,
    "sqlite": SQLite,
}

_adapters: dict[tuple[Any, ...], Adapter] = {}


@functools.cache
def _registered() -> dict[str, AdapterFactory]:
    """What other distributions registered; loaded once per process."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}
