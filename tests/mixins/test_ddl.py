"""The DDL each database is sent, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from tests.models import Task

TABLE: Any = Task.__table__

CLOCKS = [
    (postgresql.dialect(), "TIMESTAMP WITH TIME ZONE", "clock_timestamp()"),
    (mysql.dialect(), "DATETIME(6)", "UTC_TIMESTAMP(6)"),
    (sqlite.dialect(), "DATETIME", "strftime('%Y-%m-%d %H:%M:%f000', 'now')"),
]


def index_sql(role: str, dialect: Any) -> str:
    [index] = [index for index in TABLE.indexes if index.name == role]
    return " ".join(str(CreateIndex(index).compile(dialect=dialect)).split())


@pytest.mark.parametrize(("dialect", "type_", "clock"), CLOCKS, ids=lambda value: getattr(value, "name", ""))
def test_the_clock_columns_default_to_the_databases_clock(dialect: Any, type_: str, clock: str) -> None:
    sql = str(CreateTable(TABLE).compile(dialect=dialect))
    for column in ("created_at", "ready_at", "scheduled_at"):
        line = next(line for line in sql.splitlines() if line.strip().startswith(column))
        assert type_ in line
        assert clock in line.replace("%%", "%")
        assert "NOT NULL" in line


@pytest.mark.parametrize("dialect", [postgresql.dialect(), sqlite.dialect()], ids=lambda dialect: dialect.name)
def test_the_indexes_hold_only_the_rows_of_their_role(dialect: Any) -> None:
    assert index_sql("ix_task_claim", dialect).endswith("(queue, status, priority, ready_at, id) WHERE status = 'NEW'")
    assert index_sql("ix_task_promote", dialect).endswith(
        "(status, priority, scheduled_at, id) WHERE status = 'SCHEDULED'"
    )
    assert index_sql("ix_task_take_over", dialect).endswith("(status, reserved_until, id) WHERE status = 'RUNNING'")
    assert index_sql("ix_task_prune", dialect).endswith(
        "(status, finished_at, id) WHERE status IN ('CANCELLED', 'COMPLETED', 'FAILED')"
    )


@pytest.mark.parametrize("dialect", [postgresql.dialect(), sqlite.dialect(), mysql.dialect()], ids=lambda d: d.name)
def test_the_hash_of_the_unique_key_is_unique_over_all_rows(dialect: Any) -> None:
    assert index_sql("uq_task_unique_hash", dialect) == "CREATE UNIQUE INDEX uq_task_unique_hash ON task (unique_hash)"


def test_ids_take_sixteen_bytes() -> None:
    assert "id UUID" in str(CreateTable(TABLE).compile(dialect=postgresql.dialect()))
    assert "id BINARY(16)" in str(CreateTable(TABLE).compile(dialect=mysql.dialect()))


def test_mysql_stores_all_of_unicode_and_compares_text_as_it_is_written() -> None:
    sql = str(CreateTable(TABLE).compile(dialect=mysql.dialect()))
    assert "ENGINE=InnoDB" in sql
    assert "CHARSET=utf8mb4" in sql
    assert "utf8mb4_bin" in sql
