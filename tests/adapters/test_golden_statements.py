"""The statements of `enqueue_from`, in their order, against files written by hand from the vendors' pages."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Dialect, bindparam, delete, insert, select, update
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.dialects.mysql.mariadb import MariaDBDialect
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite import pysqlite

from sa_taskqueue.adapters.derived import Member, held_as
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.adapters.sqlite_derived import _NEW_ID
from sa_taskqueue.store.by_statement import NewRows, insert_for_changed, insert_for_found
from tests.adapters.recorder import Driver, Recorder
from tests.adapters.scenario import SERVERS, adapter_of
from tests.adapters.test_golden import normal
from tests.models import Base

GOLDEN = Path(__file__).parent / "golden_statements"
TASKS, ORDERS = Base.metadata.tables["task"], Base.metadata.tables["orders"]
HOSTS = {
    "postgresql": "www.postgresql.org",
    "postgresql17": "www.postgresql.org",
    "postgresql12": "www.postgresql.org",
    "mysql": "dev.mysql.com",
    "mariadb": "mariadb.com",
    "sqlite": "www.sqlite.org",
}


def dialect_of(server: str) -> Dialect:
    kinds: dict[str, Callable[..., Any]] = {
        "postgresql": PGDialect,
        "postgresql17": PGDialect,
        "postgresql12": PGDialect,
        "mysql": MySQLDialect,
        "mariadb": MariaDBDialect,
        "sqlite": pysqlite.dialect,
    }
    driver = Driver("qmark" if server == "sqlite" else "pyformat")
    driver.sqlite_version_info = sqlite3.sqlite_version_info  # type: ignore[attr-defined]
    dialect = kinds[server](dbapi=driver)
    versions = {"postgresql17": (17, 2), "postgresql12": (12, 4), "mariadb": (10, 11, 19), "mysql": (9, 7, 4)}
    dialect.server_version_info = versions.get(server, (18, 0))
    return dialect  # type: ignore[no-any-return]


def sent(server: str, operation: str) -> list[str]:
    dialect = dialect_of(server)
    derivation = adapter_for(dialect).derivation()
    assert derivation is not None
    members = [
        Member("order_id", derivation.value(ORDERS.c.id, held_as(ORDERS.c.id.type, dialect)), "never"),
        Member("status", derivation.value(ORDERS.c.status, held_as(ORDERS.c.status.type, dialect)), "allowed"),
        Member("lang", '"fr"'),
    ]
    values = {"id": derivation.new_id(), "name": bindparam("task_name", "send", type_=TASKS.c.name.type)}
    rows = NewRows(TASKS, values, {"body": derivation.json_object(members)})
    recording = Recorder(dialect, lambda name: 1)
    with recording.engine.begin() as connection:
        STATEMENTS[operation](connection, rows)
    return [sql.replace(_NEW_ID, "NEW_ID") for sql in recording.statements()]


_CHANGE = update(ORDERS).where(ORDERS.c.status == "open").values(status="done")
_GONE = delete(ORDERS).where(ORDERS.c.status == "open")

STATEMENTS: dict[str, Callable[[Any, NewRows], Any]] = {
    "update": lambda connection, rows: insert_for_changed(connection, rows, _CHANGE),
    "update_returning": lambda connection, rows: insert_for_changed(connection, rows, _CHANGE.returning(ORDERS.c.id)),
    "delete": lambda connection, rows: insert_for_changed(connection, rows, _GONE),
    "insert": lambda connection, rows: insert_for_changed(connection, rows, insert(ORDERS).values(status="new")),
    "select": lambda connection, rows: insert_for_found(connection, rows, select(ORDERS.c.id)),
}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.sql")), ids=lambda path: path.stem)
def test_the_statements_are_as_written_by_hand(path: Path) -> None:
    server, operation = path.stem.split(".")
    text = path.read_text()
    assert text.startswith(f"-- https://{HOSTS[server]}/")
    written = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    assert [normal(sql) for sql in sent(server, operation)] == [normal(sql) for sql in written.split(";")]


def test_the_id_of_sqlite_is_time_version_random_variant_random() -> None:
    """https://www.sqlite.org/lang_corefunc.html: char() below 128 is one byte; || of blobs keeps their bytes."""
    time, *rest = _NEW_ID.removeprefix("CAST((SELECT ").removesuffix(" AS BLOB)").split("AS ms)) || ")
    assert time.count("substr(bytes, 1 + ((ms >> ") == 6
    assert rest == [
        (
            "char(112 + (random() & 15)) || randomblob(1)"
            f" || substr(x'{bytes(range(0x80, 0xC0)).hex().upper()}', 1 + (random() & 63), 1) || randomblob(7)"
        )
    ]


def test_each_database_has_its_files() -> None:
    assert {path.stem.split(".")[0] for path in GOLDEN.glob("*.sql")} == set(HOSTS)


@pytest.mark.parametrize("server", ["oracle", "mssql", "cockroachdb"])
def test_what_is_not_written_for_a_database_is_not_offered_there(server: str) -> None:
    adapter = adapter_of(SERVERS[server]())
    assert adapter.derivation() is None
    assert not adapter.changes_in_ctes
    assert adapter.key_table() is None
