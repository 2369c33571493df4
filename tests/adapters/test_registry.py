from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite
from sqlalchemy.engine.default import DefaultDialect

from sa_taskqueue.adapters import registry
from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.mariadb import MariaDB
from sa_taskqueue.adapters.mssql import SQLServer
from sa_taskqueue.adapters.mysql import MySQL, MySQLTypes
from sa_taskqueue.adapters.oracle import Oracle
from sa_taskqueue.adapters.postgresql import PostgreSQL, PostgreSQLTypes
from sa_taskqueue.adapters.registry import adapter_for, index_options, table_options
from sa_taskqueue.adapters.sqlite import SQLite
from sa_taskqueue.store import TaskStore
from tests.models import Task


def dialect(module: Any, version: tuple[Any, ...] | None = None, *, mariadb: bool = False) -> Dialect:
    found: Dialect = module.dialect()
    found.server_version_info = version
    if mariadb:
        found.is_mariadb = True  # type: ignore[attr-defined]
    return found


def named(module: Any, name: str) -> Dialect:
    found: Dialect = module.dialect()
    found.name = name
    return found


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        *((dialect(postgresql, (major, 1)), PostgreSQL) for major in range(12, 19)),
        (dialect(postgresql, (9, 5)), PostgreSQL),
        (dialect(postgresql, (9, 4, 26)), PostgreSQLTypes),
        (dialect(mysql, (9, 7, 4)), MySQL),
        (dialect(mysql, (8, 4, 6)), MySQL),
        (dialect(mysql, (8, 0, 11)), MySQL),
        (dialect(mysql, (5, 7, 44)), MySQLTypes),
        (dialect(mysql, (11, 8, 3), mariadb=True), MariaDB),
        (dialect(mysql, (10, 11, 19), mariadb=True), MariaDB),
        (dialect(mysql, (10, 6, 0), mariadb=True), MariaDB),
        (dialect(mysql, (10, 5, 29), mariadb=True), MySQLTypes),
        (dialect(mysql, (5, 7, 9)), MySQLTypes),
        (dialect(mysql, (10, 2, 1), mariadb=True), MySQLTypes),
        (dialect(sqlite, (3, 40, 1)), SQLite),
        (dialect(sqlite, (3, 8, 3)), SQLite),
        (dialect(oracle, (23, 4)), Oracle),
        (dialect(mssql, (16, 0)), SQLServer),
        (named(postgresql, "yugabytedb"), PostgreSQL),
        (DefaultDialect(), Adapter),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_version_decides_and_an_old_server_gets_the_portable_statements(found: Dialect, kind: type) -> None:
    assert type(adapter_for(found)) is kind


@pytest.mark.parametrize("module", [postgresql, mysql, sqlite])
def test_before_the_first_connection_the_newest_server_is_assumed(module: Any) -> None:
    assert adapter_for(dialect(module)).version is None
    assert type(adapter_for(dialect(module))) in (PostgreSQL, MySQL, SQLite)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 16", (11, 2)),
        ("PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17", (15, 2)),
    ],
)
def test_yugabytedb_is_the_postgresql_that_it_says_it_is(said: str, version: tuple[int, ...]) -> None:
    """With the dialect `postgresql`; its own does not ask, so that the older one is assumed."""
    found: Any = dialect(postgresql)
    connection = SimpleNamespace(exec_driver_sql=lambda _: SimpleNamespace(scalar=lambda: said))
    found.server_version_info = found._get_server_version_info(connection)
    assert found.server_version_info == version
    table = Task.metadata.tables["task"]
    for one in (found, named(postgresql, "yugabytedb")):
        claim: Any = TaskStore(table, adapter_for(one))._claims._shape
        newer = one is found and version[0] >= 12
        assert ("MATERIALIZED" in str(claim.statement.compile(dialect=one))) is newer


def test_one_adapter_per_dialect_and_version() -> None:
    assert adapter_for(dialect(postgresql, (15, 1))) is adapter_for(dialect(postgresql, (15, 1)))
    assert adapter_for(dialect(postgresql, (15, 1))) is not adapter_for(dialect(postgresql, (15, 2)))


class Foreign(Adapter):
    name = "foreign"


def test_a_registered_adapter_goes_before_the_librarys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("sqlite", f"{__name__}:Foreign", registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Foreign)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    registry._registered.cache_clear()
    try:
        assert registry.factory_for("sqlite") is Foreign
    finally:
        monkeypatch.undo()
        registry._registered.cache_clear()


def test_only_options_of_dialects_that_sqlalchemy_brings_along() -> None:
    assert {key.split("_")[0] for key in table_options()} == {"mysql", "mariadb"}
    assert table_options()["mysql_collate"] == "utf8mb4_bin"
    assert index_options(None) == {}
