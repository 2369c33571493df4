"""Empty tables of the outbox and inbox on the server under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine, select
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from sa_taskqueue import TaskSession
from tests.outbox import change_models  # noqa: F401 - its table
from tests.outbox.models import Base, Outbox, queue
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


@pytest.fixture
def factory(engine: Engine, tables: None) -> sessionmaker[TaskSession]:
    return sessionmaker(engine, class_=TaskSession, info={"task_queue": queue})


@pytest.fixture
def async_factory(async_engine: Any, tables: None) -> Any:
    from sqlalchemy.ext.asyncio import async_sessionmaker

    from sa_taskqueue import AsyncTaskSession

    return async_sessionmaker(async_engine, class_=AsyncTaskSession, info={"task_queue": queue})


@pytest.fixture
def stored(plain_engine: Engine) -> Callable[..., list[Any]]:
    """The given columns of all committed messages, in the order of their ids; one column alone, or tuples."""

    def read(*columns: str) -> list[Any]:
        with Session(plain_engine) as session:
            rows = session.execute(select(*(getattr(Outbox, name) for name in columns or ("id",))).order_by(Outbox.id))
            return [tuple(row) if len(columns) > 1 else row[0] for row in rows]

    return read


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables woken so far, in order."""
    names: list[str] = []
    monkeypatch.setattr(
        "sa_taskqueue.session.outermost.wakeups.notify", lambda _url, table, _name: names.append(table.name)
    )
    return names
