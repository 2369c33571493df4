"""Servers that the tests do not start: run on one of your own (see compose.yml), named by its URL.

Without one, what is sent to them is held in place by golden SQL alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import URL, text

from tests.servers.base import Server, Unavailable

_PASSWORD = "Tasks_0123"


class PinnedServer(Server):
    def candidates(self) -> Iterator[URL]:
        return iter(())

    def start(self) -> URL:
        raise Unavailable(
            f"{self.name}: pinned by golden SQL; SA_TASKQUEUE_TEST_{self.name.upper()}_URL names one to use"
        )


class OracleServer(PinnedServer):
    """Oracle 19c or later, through python-oracledb; the URL is that of a user who may create users.

    A database of one test process is a user, which is a schema there.
    """

    name = dialect = "oracle"
    drivers = ("oracledb",)
    async_drivers = ("oracledb_async",)
    connect_args: Mapping[str, Any] = MappingProxyType({"tcp_connect_timeout": 5})
    version_query = "SELECT banner FROM v$version"

    def accepts(self, version: str) -> bool:
        return version.startswith("Oracle")

    def create_database(self, admin: URL, database: str) -> URL:
        with self._admin(admin) as connection:
            connection.execute(text(self.create_statement(database)))
            connection.execute(text(f"GRANT CONNECT, RESOURCE, UNLIMITED TABLESPACE TO {database}"))
        return admin.set(username=database, password=_PASSWORD)

    def create_statement(self, database: str) -> str:
        return f'CREATE USER {database} IDENTIFIED BY "{_PASSWORD}"'

    def drop_database(self, admin: URL, database: str) -> None:
        with self._admin(admin) as connection:
            connection.execute(text(f"DROP USER {database} CASCADE"))


class SQLServerServer(PinnedServer):
    """SQL Server 2016 or later; the URL names the driver, and a login that may create databases."""

    name = dialect = "mssql"
    drivers = ("pymssql", "pyodbc")
    async_drivers = ("aioodbc",)
    connect_args: Mapping[str, Any] = MappingProxyType({})
    version_query = "SELECT @@VERSION"

    def accepts(self, version: str) -> bool:
        return version.startswith("Microsoft SQL")

    def create_statement(self, database: str) -> str:
        return f"CREATE DATABASE {database} COLLATE Latin1_General_100_BIN2_UTF8"

    def drop_database(self, admin: URL, database: str) -> None:
        with self._admin(admin) as connection:
            connection.execute(text(f"ALTER DATABASE {database} SET SINGLE_USER WITH ROLLBACK IMMEDIATE"))
            connection.execute(text(f"DROP DATABASE {database}"))

    def _with_driver(self, url: URL, driver: str) -> URL:
        chosen = super()._with_driver(url, driver).difference_update_query(("driver", "TrustServerCertificate"))
        if driver == "pymssql":
            return chosen
        return chosen.update_query_dict({"driver": "ODBC Driver 18 for SQL Server", "TrustServerCertificate": "yes"})


class CockroachDBServer(PinnedServer):
    """CockroachDB 22.2 or later, through the adapter of examples/cockroachdb_adapter, which must be installed."""

    name = dialect = "cockroachdb"
    drivers = ("psycopg2",)
    async_drivers = ("asyncpg",)

    def accepts(self, version: str) -> bool:
        return version.startswith("CockroachDB")

    def create_statement(self, database: str) -> str:
        return f"CREATE DATABASE {database}"

    def drop_database(self, admin: URL, database: str) -> None:
        with self._admin(admin) as connection:
            connection.execute(text(f"DROP DATABASE {database} CASCADE"))
