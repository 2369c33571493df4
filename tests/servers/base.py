from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, Table, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool


class Unavailable(Exception):
    """The server was neither named, nor found, nor could it be started; the message says what was tried."""


class Backend(NamedTuple):
    """What one test runs on: a server, with a driver for `engine` and one for `async_engine`."""

    server: str
    driver: str
    async_driver: str

    def id(self, *, sync: bool, use_async: bool) -> str:
        drivers = [driver for driver, wanted in ((self.driver, sync), (self.async_driver, use_async)) if wanted]
        return "-".join([self.server, *drivers])


class Server:
    """A database server: how to find and start it, and how to make a database in it."""

    name: str
    dialect: str
    #: The first driver is the usual one; the others run only where a test asks for every driver.
    drivers: Sequence[str]
    async_drivers: Sequence[str]
    #: How many of `async_drivers`, from the first, are usual.
    usual_async = 1
    #: For drivers that know this argument, and servers that know this question.
    connect_args: Mapping[str, Any] = MappingProxyType({"connect_timeout": 5})
    version_query = "SELECT version()"

    def find(self, *, start: bool) -> URL:
        """URL of an administrator's database; starts a server of our own if there is none and `start` is true."""
        named = self.named()
        if named:
            url = self._with_driver(make_url(named), self.drivers[0])
            reason = self.refusal(url)
            if reason:
                raise Unavailable(f"{self.name}: {url} does not serve: {reason}")
            return url
        for candidate in self.candidates():
            if self.refusal(candidate) is None:
                return candidate
        if not start:
            raise Unavailable(f"{self.name}: no server found, and none is started here; name one with --servers")
        return self.start()

    def named(self) -> str | None:
        """The URL in the server's environment variable."""
        return os.environ.get(f"SA_TASKQUEUE_TEST_{self.name.upper()}_URL")

    def candidates(self) -> Iterator[URL]:
        """Where a server of this kind usually runs on this machine."""
        raise NotImplementedError

    def start(self) -> URL:
        """Start a server of our own; Unavailable if what it needs is not installed."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the server that `start` started, if it did."""

    def accepts(self, version: str) -> bool:
        """Whether a server that reports this version is of the kind meant."""
        raise NotImplementedError

    def refusal(self, url: URL) -> str | None:
        """Why the server at `url` cannot be used; None if it can."""
        try:
            engine = create_engine(url, poolclass=NullPool, connect_args=dict(self.connect_args))
            with engine.connect() as connection:
                version = str(connection.execute(text(self.version_query)).scalar_one())
        except (DBAPIError, ImportError) as error:
            return str(error).splitlines()[0]
        return None if self.accepts(version) else f"it is {version}"

    def create_database(self, admin: URL, database: str) -> URL:
        with self._admin(admin) as connection:
            connection.execute(text(self.create_statement(database)))
        return admin.set(database=database)

    def create_statement(self, database: str) -> str:
        raise NotImplementedError

    def drop_database(self, admin: URL, database: str) -> None:
        raise NotImplementedError

    def empty(self, connection: Connection, tables: Sequence[Table]) -> None:
        """Delete all rows; `tables` are sorted so that children come first."""
        for table in tables:
            connection.execute(table.delete())

    def url(self, database: URL, driver: str) -> URL:
        return self._with_driver(database, driver)

    def _with_driver(self, url: URL, driver: str) -> URL:
        return url.set(drivername=f"{self.dialect}+{driver}")

    def _admin(self, admin: URL) -> Connection:
        return create_engine(admin, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect()
