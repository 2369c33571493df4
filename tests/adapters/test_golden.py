"""The SQL of the hot path per database, against files written by hand from the vendors' pages.

There is no switch that writes these files: whoever changes a statement says in the file what it should be.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.mysql import mysqldb
from sqlalchemy.dialects.mysql.mariadb import MariaDBDialect
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine.default import DefaultDialect

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.store import TaskStore
from tests.models import Task

GOLDEN = Path(__file__).parent / "golden"


def dialect_of(name: str) -> Dialect:
    """`postgresql` is the newest, `postgresql_11` that version."""
    kinds = {
        "postgresql": psycopg.dialect,
        "mysql": mysqldb.dialect,
        "mariadb": MariaDBDialect,
        "sqlite": sqlite.dialect,
        "generic": DefaultDialect,
    }
    kind, _, version = name.partition("_")
    dialect: Dialect = kinds[kind]()
    if version:
        dialect.server_version_info = {"11": (11, 22), "57": (5, 7, 44)}[version]
    return dialect


def statements(dialect: Dialect, operation: str) -> list[str]:
    store = TaskStore(Task.metadata.tables["task"], adapter_for(dialect))
    shape = {
        "claim": store._claims._shape,
        "claim_from_positions": store._claims._from_positions,
        "complete": store._settling._completed,
        "delete": store._settling._deleted,
        "try_again": store._settling._again,
        "renew": store._leases._renew,
        "promote": store._promotion._shape,
    }[operation]
    parts = [getattr(shape, name) for name in ("statement", "candidates", "lock", "change") if hasattr(shape, name)]
    return [str(part.compile(dialect=dialect)) for part in parts]


def normal(sql: str) -> str:
    """One space between words, none inside parentheses."""
    return re.sub(r"\s*([()])\s*", r"\1", re.sub(r"\s+", " ", sql)).strip()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.sql")), ids=lambda path: path.stem)
def test_the_sql_is_as_written_by_hand(path: Path) -> None:
    name, operation = path.stem.split(".")
    written = re.sub(r"^--.*$", "", path.read_text(), flags=re.MULTILINE)

    assert [normal(sql) for sql in statements(dialect_of(name), operation)] == list(map(normal, written.split(";")))


@pytest.mark.parametrize("operation", ["claim", "complete", "renew", "promote"])
def test_mariadb_is_sent_what_mysql_is_sent(operation: str) -> None:
    mariadb, mysql = (statements(dialect_of(name), operation) for name in ("mariadb", "mysql"))
    # Which words are reserved differs, and with it the quoting.
    assert [sql.replace("`", "") for sql in mariadb] == [sql.replace("`", "") for sql in mysql]
