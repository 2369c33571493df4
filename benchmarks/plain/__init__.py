"""The floor: one file per family of databases, each with the statements a person would write by hand."""

from __future__ import annotations

from benchmarks.plain.base import PlainQueue
from benchmarks.plain.mysql import MySQLQueue
from benchmarks.plain.postgresql import PostgreSQLQueue
from benchmarks.plain.sqlite import SQLiteQueue

FAMILIES: dict[str, type[PlainQueue]] = {
    "mariadb": MySQLQueue,
    "mysql": MySQLQueue,
    "postgresql": PostgreSQLQueue,
    "sqlite": SQLiteQueue,
}
