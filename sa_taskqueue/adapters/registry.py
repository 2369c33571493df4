"""Which adapter serves a dialect and server; how third parties add theirs (entry points ``sa_taskqueue.adapters``)."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from sqlalchemy import DDL, ColumnElement, Dialect
from sqlalchemy.schema import ExecutableDDLElement

from sa_taskqueue.adapters.base import Adapter, at_least
from sa_taskqueue.adapters.mariadb import MariaDB
from sa_taskqueue.adapters.mssql import SQLServer
from sa_taskqueue.adapters.mysql import MySQL, MySQLTypes
from sa_taskqueue.adapters.oracle import Oracle
from sa_taskqueue.adapters.partial import IndexedRows
from sa_taskqueue.adapters.postgresql import PostgreSQL, PostgreSQLTypes
from sa_taskqueue.adapters.sqlite import SQLite
from sa_taskqueue.exceptions import UnsupportedDatabase

_AZURE_SQL = (12, 0, 2000, 8)
"""What Azure SQL Database calls itself, whatever it can do."""

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
    """The options of an index over only the rows for which ``holds``, where the database can have it."""
    if holds is None:
        return {}
    rows = IndexedRows(holds)
    return {"postgresql_where": rows, "sqlite_where": rows, "mssql_where": rows}


def unique_options(column: ColumnElement[Any]) -> dict[str, Any]:
    """The options of a unique index of a column that may be NULL: SQL Server takes a second NULL for a duplicate."""
    return {"mssql_where": column.is_not(None)}


def table_options() -> dict[str, Any]:
    """The options of a queue table: on MySQL and MariaDB InnoDB, all of Unicode, text compared as it is written."""
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    return {f"{dialect}_{key}": value for dialect in ("mysql", "mariadb") for key, value in options.items()}


def reservation_table_options() -> dict[str, Any]:
    """The options of a table of reservations: on MySQL and MariaDB it is held in memory."""
    return {"mysql_engine": "MEMORY", "mariadb_engine": "MEMORY"}


def unlogged() -> ExecutableDDLElement:
    """What makes a new table UNLOGGED, on PostgreSQL; nothing elsewhere."""
    return DDL(  # type: ignore[no-untyped-call]
        "ALTER TABLE %(fullname)s SET UNLOGGED"
    ).execute_if(dialect="postgresql")


def _postgresql(dialect: Dialect) -> Adapter:
    portable = _at_least(PostgreSQLTypes(dialect), "PostgreSQL", "9.4", 9, 4)  # JSONB
    return _from_version(PostgreSQL(dialect), portable, 9, 5)


def _yugabytedb(dialect: Dialect) -> Adapter:
    """Its own dialect does not ask for the version. YugabyteDB before 2.25 is PostgreSQL 11, which the others take."""
    adapter = PostgreSQL(dialect)
    adapter.version = adapter.version or (11, 2)
    return adapter


def _mysql(dialect: Dialect) -> Adapter:
    portable = MySQLTypes(dialect)
    if getattr(dialect, "is_mariadb", False):
        return _from_version(MariaDB(dialect), _at_least(portable, "MariaDB", "10.2.1", 10, 2, 1), 10, 6)  # defaults
    return _from_version(MySQL(dialect), _at_least(portable, "MySQL", "5.7", 5, 7), 8)  # none older was ever tried


def _sqlite(dialect: Dialect) -> Adapter:
    return _at_least(SQLite(dialect), "SQLite", "3.8.3", 3, 8, 3)  # partial indexes, printf, WITH


def _oracle(dialect: Dialect) -> Adapter:
    return _at_least(Oracle(dialect), "Oracle Database", "19c", 19)


def _mssql(dialect: Dialect) -> Adapter:
    adapter = SQLServer(dialect)
    return adapter if adapter.version == _AZURE_SQL else _at_least(adapter, "SQL Server", "2016", 13)


def _at_least(adapter: Adapter, server: str, release: str, *floor: int) -> Adapter:
    """The adapter; an older server is refused, as the portable types and clock are not its own."""
    if at_least(adapter.version, *floor):
        return adapter
    raise UnsupportedDatabase(server=server, version=_text(adapter.version), floor=release)


def _text(version: tuple[int, ...] | None) -> str:
    return ".".join(map(str, version or ()))


def _from_version(adapter: Adapter, portable: Adapter, *floor: int) -> Adapter:
    """The adapter from this version on, else the portable statements; said once, as adapters are kept."""
    if at_least(adapter.version, *floor):
        return adapter
    logger.warning(
        "%s %s has no SKIP LOCKED: tasks are claimed one by one, which is slower; %s or newer is better",
        adapter.name,
        _text(adapter.version),
        _text(floor),
    )
    return portable


_FACTORIES: dict[str, AdapterFactory] = {
    "mariadb": _mysql,
    "mssql": _mssql,
    "mysql": _mysql,
    "oracle": _oracle,
    "postgresql": _postgresql,
    "sqlite": _sqlite,
    "yugabytedb": _yugabytedb,
}

_adapters: dict[tuple[Any, ...], Adapter] = {}


@functools.cache
def _registered() -> dict[str, AdapterFactory]:
    """What other distributions registered; loaded once per process."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}
