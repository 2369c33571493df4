"""Too old a server is refused by name, with what to do; the oldest that is served is served."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import PathDistribution, entry_points
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.schema import CreateTable

from sa_taskqueue.adapters import registry
from sa_taskqueue.adapters.mssql import SQLServer
from sa_taskqueue.adapters.oracle import Oracle
from sa_taskqueue.exceptions import UnsupportedDatabase
from sa_taskqueue.testing.models import TASKS
from tests.adapters.scenario import EXAMPLE


def dialect(kind: Any, version: tuple[int, ...] | None, name: str | None = None) -> Dialect:
    found: Dialect = kind()
    found.server_version_info = version
    if name is not None:
        found.name = name
    return found


def mariadb() -> Dialect:
    found: Dialect = mysql.dialect()
    found.is_mariadb = True  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("version", [(19, 3, 0, 0, 0), (21, 3), (23, 26, 0), (26, 1), None])
def test_oracle_from_19c_on(version: tuple[int, ...] | None) -> None:
    assert type(registry.adapter_for(dialect(oracle.dialect, version))) is Oracle


@pytest.mark.parametrize("version", [(13, 0, 1601), (15, 0), (16, 0), (17, 0), (12, 0, 2000, 8), None])
def test_sql_server_from_2016_on_and_azure_sql(version: tuple[int, ...] | None) -> None:
    """Azure SQL calls itself 12.0.2000.8, a version that was never on sale."""
    assert type(registry.adapter_for(dialect(mssql.dialect, version))) is SQLServer


@pytest.mark.parametrize(
    ("kind", "version", "said"),
    [
        (oracle.dialect, (18, 4), "Oracle Database 18.4 is too old: the task queue needs 19c or newer. Upgrade"),
        (oracle.dialect, (12, 2, 0, 1), "Oracle Database 12.2.0.1 is too old"),
        (postgresql.dialect, (9, 3, 25), "PostgreSQL 9.3.25 is too old: the task queue needs 9.4 or newer. Upgrade"),
        (mysql.dialect, (5, 6, 51), "MySQL 5.6.51 is too old: the task queue needs 5.7 or newer. Upgrade the server"),
        (mariadb, (10, 1, 48), "MariaDB 10.1.48 is too old: the task queue needs 10.2.1 or newer. Upgrade the server"),
        (sqlite.dialect, (3, 7, 17), "SQLite 3.7.17 is too old: the task queue needs 3.8.3 or newer. Upgrade"),
        (mssql.dialect, (12, 0, 6024), "SQL Server 12.0.6024 is too old: the task queue needs 2016 or newer"),
    ],
)
def test_an_older_one_is_refused_with_what_to_do(kind: Any, version: tuple[int, ...], said: str) -> None:
    with pytest.raises(UnsupportedDatabase, match=said):
        registry.adapter_for(dialect(kind, version))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example as pip would install it: its module, and the entry points of its pyproject.toml."""
    import tomllib

    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "sa_taskqueue_cockroachdb-0.1.0.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    points = project["entry-points"][registry.GROUP]
    lines = [f"[{registry.GROUP}]", *(f"{name} = {target}" for name, target in points.items())]
    metadata.joinpath("entry_points.txt").write_text("\n".join(lines))
    assert PathDistribution(metadata).name == "sa-taskqueue-cockroachdb"
    monkeypatch.setattr(sys, "path", [str(EXAMPLE), str(tmp_path), *sys.path])
    registry._registered.cache_clear()
    yield
    monkeypatch.undo()
    registry._registered.cache_clear()


def test_the_example_for_cockroachdb_comes_in_through_the_entry_point(installed: None) -> None:
    assert "cockroachdb" in {point.name for point in entry_points(group=registry.GROUP)}
    adapter = registry.adapter_for(dialect(PGDialect, (23, 2, 1), "cockroachdb"))
    assert (type(adapter).__module__, adapter.name) == ("sa_taskqueue_cockroachdb", "cockroachdb")


def test_a_cockroachdb_without_delete_using_is_refused(installed: None) -> None:
    with pytest.raises(UnsupportedDatabase, match=r"CockroachDB 22.1.0 is too old: the task queue needs 22.2 or newer"):
        registry.adapter_for(dialect(PGDialect, (22, 1, 0), "cockroachdb"))


@pytest.mark.parametrize(
    ("found", "default"),
    [
        (dialect(mysql.dialect, (5, 7, 44)), "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"),
        (dialect(mysql.dialect, (8, 0, 12)), "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"),
        (dialect(mysql.dialect, (8, 0, 13)), "DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))"),
        (dialect(mysql.dialect, None), "DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))"),
        (dialect(mariadb, (10, 5, 29)), "DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))"),
    ],
)
def test_a_table_for_a_mysql_without_expressions_as_defaults_has_none(found: Dialect, default: str) -> None:
    """5.7 and 8.0.12 refuse parentheses there; MariaDB has taken any expression since 10.2.1."""
    ddl = str(CreateTable(TASKS).compile(dialect=found))
    assert f"created_at {default}" in ddl
