"""Empty tables of the outbox and inbox on the server under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.pool import NullPool

from tests.outbox.models import Base
from tests.servers import Backend
from tests.sqlite import sqlite_engine

_made: set[URL] = set()


@pytest.fixture
def plain_engine(database_url: URL) -> Iterator[Engine]:
    """An engine beside the one under test, for looking at what is really committed."""
    sqlite = database_url.drivername.startswith("sqlite")
    engine = sqlite_engine(database_url) if sqlite else create_engine(database_url, poolclass=NullPool)
    yield engine.execution_options(sqlite_begin="DEFERRED")
    engine.dispose()


@pytest.fixture
def tables(backend: Backend, database_url: URL, plain_engine: Engine) -> None:
    if backend.server == "sqlite" or database_url not in _made:
        Base.metadata.create_all(plain_engine)
        _made.add(database_url)
    with plain_engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
