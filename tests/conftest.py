"""Fixtures and options that all tests share.

A test asks for `engine` or `async_engine` (or only for `server`, `url`) and is run once for each chosen server and
usual driver; `@pytest.mark.every_driver` adds the other drivers, `@pytest.mark.servers("postgresql")` takes only some.
`tables` are the tables of tests.models, empty; they live in a database of this test process's own.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from sqlalchemy import URL, Engine, MetaData, Table, create_engine, make_url
from sqlalchemy.pool import NullPool

from tests.servers import SERVERS, Backend
from tests.servers.choice import CHOICE, Choice
from tests.sqlite import sqlite_engine

pytest_plugins = ["tests.plugin"]

# A slow machine must not fail a test for its time; examples are the same in each run unless --hypothesis-seed is given.
hypothesis_settings.register_profile("project", deadline=None, print_blob=True)
hypothesis_settings.load_profile("project")


class Databases:
    """A database in each server for this test process, made when first asked for and dropped at the end."""

    def __init__(self, choice: Choice, name: str) -> None:
        self._choice = choice
        self._name = name
        self._made: dict[str, URL] = {}
        self._with_tables: set[str] = set()

    def url(self, server: str) -> URL:
        if server not in self._made:
            self._made[server] = SERVERS[server].create_database(self._admin(server), self._name)
        return self._made[server]

    def create_tables_once(self, server: str, engine: Engine, metadata: MetaData) -> None:
        if server not in self._with_tables:
            metadata.create_all(engine)
            self._with_tables.add(server)

    def drop(self) -> None:
        for server in self._made:
            SERVERS[server].drop_database(self._admin(server), self._name)

    def _admin(self, server: str) -> URL:
        found = self._choice.urls.get(server)
        if found is None:
            pytest.skip(self._choice.reasons[server])
        return make_url(found)


@pytest.fixture(scope="session")
def databases(pytestconfig: pytest.Config, testrun_uid: str, worker_id: str) -> Iterator[Databases]:
    databases = Databases(pytestconfig.stash[CHOICE], f"sa_taskqueue_test_{testrun_uid[:8]}_{worker_id}")
    yield databases
    databases.drop()


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """Server and drivers of this run of the test."""
    backend: Backend = request.param
    return backend


@pytest.fixture
def server(backend: Backend) -> str:
    """Name of the server: sqlite, postgresql, mysql, mariadb, postgresql18."""
    return backend.server


@pytest.fixture
def database_url(backend: Backend, databases: Databases, tmp_path: Path) -> URL:
    """The test's database: in a server one of this process's own, on SQLite a file of this test's own."""
    if backend.server == "sqlite":
        return URL.create("sqlite+pysqlite", database=str(tmp_path / "test.db"))
    return databases.url(backend.server)


@pytest.fixture
def url(backend: Backend, database_url: URL) -> URL:
    """URL for the sync driver."""
    return SERVERS[backend.server].url(database_url, backend.driver)


@pytest.fixture
def async_url(backend: Backend, database_url: URL) -> URL:
    """URL for the async driver."""
    return SERVERS[backend.server].url(database_url, backend.async_driver)


@pytest.fixture
def engine(url: URL) -> Iterator[Engine]:
    engine = _installed(url, sqlite_engine if url.get_backend_name() == "sqlite" else create_engine)
    yield engine
    engine.dispose()


@pytest.fixture
async def async_engine(async_url: URL) -> AsyncIterator[Any]:
    """AsyncEngine for the async driver; the type is not named so that tests are collected without greenlet."""
    pytest.importorskip("greenlet")
    from sqlalchemy.ext.asyncio import create_async_engine

    if async_url.get_backend_name() == "sqlite":
        engine = sqlite_engine(async_url)
    else:
        engine = _installed(async_url, create_async_engine)
    yield engine
    await engine.dispose()


@pytest.fixture
def tables(backend: Backend, database_url: URL, databases: Databases) -> MetaData:
    """The tables of tests.models, empty."""
    from tests.models import Base

    sqlite = backend.server == "sqlite"
    engine = sqlite_engine(database_url) if sqlite else create_engine(database_url, poolclass=NullPool)
    if sqlite:
        Base.metadata.create_all(engine)
    else:
        databases.create_tables_once(backend.server, engine, Base.metadata)
        with engine.begin() as connection:
            SERVERS[backend.server].empty(connection, list(reversed(Base.metadata.sorted_tables)))
    engine.dispose()
    return Base.metadata


@pytest.fixture
def tasks(tables: MetaData) -> Table:
    """The task table of tests.models, empty."""
    return tables.tables["task"]


@pytest.fixture(autouse=True)
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of this test's random numbers; printed if it fails, chosen again by --seed."""
    chosen: int | None = request.config.getoption("--seed")
    seed = chosen if chosen is not None else zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    request.node.add_report_section("setup", "seed", f"--seed={seed}")
    return seed


def _installed(url: URL, factory: Any) -> Any:
    try:
        return factory(url)
    except ModuleNotFoundError as missing:
        pytest.skip(f"the driver of {url.drivername} is not installed: {missing}")
