from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import URL, text

from tests.servers import unstable_mysql
from tests.servers.base import Server, Unavailable
from tests.servers.process import ServerProcess


class MySQLServer(Server):
    """MySQL, from Debian's unstable suite: there is no package of it in the stable one, and no wheel."""

    name = dialect = "mysql"
    drivers: tuple[str, ...] = ("mysqldb", "pymysql")
    # Not aiomysql: 0.3.2 cannot send bytes (so no id either) with PyMySQL 1.2, which it imports a removed name from.
    async_drivers: tuple[str, ...] = ("asyncmy",)
    ports: tuple[int, ...] = (3306, 3307)

    def __init__(self) -> None:
        self._own: ServerProcess | None = None

    def candidates(self) -> Iterator[URL]:
        for port in self.ports:
            yield self._local(port)

    def accepts(self, version: str) -> bool:
        return "MariaDB" not in version

    def start(self) -> URL:
        root = unstable_mysql.install()
        own = self._own = ServerProcess(self.name)
        url = self._local(own.port)
        command = unstable_mysql.command(root, own.port)
        own.start(command, lambda: self.refusal(url) is None, user=0)
        return url

    def stop(self) -> None:
        if self._own is not None:
            self._own.stop()
            unstable_mysql.forget(self._own.port)
            self._own = None

    def create_statement(self, database: str) -> str:
        return f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4"

    def drop_database(self, admin: URL, database: str) -> None:
        with self._admin(admin) as connection:
            connection.execute(text("SET SESSION lock_wait_timeout = 30"))
            connection.execute(text(f"DROP DATABASE IF EXISTS `{database}`"))

    def _local(self, port: int) -> URL:
        return URL.create(f"{self.dialect}+{self.drivers[0]}", username="root", host="127.0.0.1", port=port)


class MariaDBServer(MySQLServer):
    """The MariaDB of the machine: running, or started from Debian's binaries in a folder of its own."""

    name = dialect = "mariadb"
    ports = (3306,)

    def accepts(self, version: str) -> bool:
        return "MariaDB" in version

    def start(self) -> URL:
        program = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        installer = shutil.which("mariadb-install-db", path="/usr/bin:/usr/local/bin")
        if program is None or installer is None:
            raise Unavailable("mariadb: no mariadbd on this machine; install Debian's package mariadb-server")
        own = self._own = ServerProcess(self.name)
        data = own.folder / "data"
        data_arguments = ["--no-defaults", f"--datadir={data}"]
        own.prepare([installer, *data_arguments, "--auth-root-authentication-method=normal", "--skip-test-db"])
        url = self._local(own.port)
        own.start(
            [
                Path(program),
                *data_arguments,
                f"--port={own.port}",
                "--bind-address=127.0.0.1",
                f"--socket={own.folder / 'socket'}",
                f"--pid-file={own.folder / 'pid'}",
                "--max-connections=500",
                "--innodb-buffer-pool-size=256M",
                "--innodb-flush-log-at-trx-commit=0",
            ],
            lambda: self.refusal(url) is None,
        )
        return url
