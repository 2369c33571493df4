"""The one place that finds, starts and stops the database servers of the tests.

Each server is looked for in this order: a URL in `SA_TASKQUEUE_TEST_<NAME>_URL`, one that runs on this machine at its
usual port, one of our own, started from installed binaries, a wheel, or (MySQL) packages unpacked in the user's cache.
"""

from __future__ import annotations

from tests.servers.base import Backend, Server, Unavailable
from tests.servers.mysql import MariaDBServer, MySQLServer
from tests.servers.pinned import CockroachDBServer, OracleServer, SQLServerServer
from tests.servers.postgresql import PostgreSQL18Server, PostgreSQLServer
from tests.servers.sqlite import SQLiteServer

SERVERS: dict[str, Server] = {
    server.name: server
    for server in (
        SQLiteServer(),
        PostgreSQLServer(),
        MySQLServer(),
        MariaDBServer(),
        PostgreSQL18Server(),
        OracleServer(),
        SQLServerServer(),
        CockroachDBServer(),
    )
}

#: Never started, never required: run only where a URL names one, else said to be pinned by golden SQL.
PINNED = ("oracle", "mssql", "cockroachdb")

#: What a plain `pytest` runs on. `postgresql18` is the same dialect again: asked for by name, or by `all`.
USUAL = ("sqlite", "postgresql", "mysql", "mariadb")

__all__ = ["Backend", "PINNED", "SERVERS", "Server", "USUAL", "Unavailable"]
