from __future__ import annotations

from importlib.metadata import EntryPoint
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


def dialect(module: Any, version: tuple[Any, ...] | None = None, *, mariadb: bool = False) -> Dialect:
    found: Dialect = module.dialect()
    found.server_version_info = version
    if mariadb:
        found.is_mariadb = True  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (dialect(postgresql, (15, 20)), PostgreSQL),
        (dialect(postgresql, (9, 5)), PostgreSQL),
        (dialect(postgresql, (9, 4, 26)), PostgreSQLTypes),
        (dialect(mysql, (9, 7, 4)), MySQL),
        (dialect(mysql, (8, 0, 11)), MySQL),
        (dialect(mysql, (5, 7, 44)), MySQLTypes),
        (dialect(mysql, (10, 11, 19), mariadb=True), MariaDB),
        (dialect(mysql, (10, 6, 0), mariadb=True), MariaDB),
        (dialect(mysql, (10, 5, 29), mariadb=True), MySQLTypes),
        (dialect(mysql, (5, 5, 5, 10, 11, 19), mariadb=False), MySQLTypes),
        (dialect(sqlite, (3, 40, 1)), SQLite),
        (dialect(sqlite, (3, 31, 1)), SQLite),
        (dialect(oracle, (23, 4)), Oracle),
        (dialect(mssql, (16, 0)), SQLServer),
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
