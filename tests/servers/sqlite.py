from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import URL

from tests.servers.base import Server


class SQLiteServer(Server):
    """No server: each test gets a file of its own (see the fixture `url`)."""

    name = dialect = "sqlite"
    drivers = ("pysqlite",)
    async_drivers = ("aiosqlite",)

    def find(self, *, start: bool) -> URL:
        return URL.create("sqlite+pysqlite")

    def candidates(self) -> Iterator[URL]:
        return iter(())

    def drop_database(self, admin: URL, database: str) -> None:
        return
