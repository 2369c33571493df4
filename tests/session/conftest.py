"""The session tests' own tables, session factories of each kind, and a record of the wake-ups sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine, func, select
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from sa_taskqueue.session import TaskSession
from tests.servers import Backend
from tests.session import change_models, statement_models  # noqa: F401 - their tables
from tests.session.models import Base, Job
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
def jobs(backend: Backend, database_url: URL, plain_engine: Engine) -> type[Job]:
    """The session tests' tables, empty."""
    if backend.server == "sqlite" or database_url not in _made:
        Base.metadata.create_all(plain_engine)
        _made.add(database_url)
    with plain_engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
    return Job


@pytest.fixture
def factory(engine: Engine, jobs: type[Job]) -> sessionmaker[TaskSession]:
    return sessionmaker(engine, class_=TaskSession)


@pytest.fixture
def async_factory(async_engine: Any, jobs: type[Job]) -> Any:
    from sqlalchemy.ext.asyncio import async_sessionmaker

    from sa_taskqueue.session import AsyncTaskSession

    return async_sessionmaker(async_engine, class_=AsyncTaskSession)


@pytest.fixture
def stored(plain_engine: Engine) -> Callable[..., list[Any]]:
    """The value of one column of all committed tasks, in the order of their ids."""

    def read(column: str = "id") -> list[Any]:
        with Session(plain_engine) as session:
            return list(session.scalars(select(getattr(Job, column)).order_by(Job.id)))

    return read


@pytest.fixture
def count(plain_engine: Engine) -> Callable[[type[Any]], int]:
    """How many rows of a model are committed."""

    def read(model: type[Any]) -> int:
        with Session(plain_engine) as session:
            return session.scalar(select(func.count()).select_from(model)) or 0

    return read


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the queues woken so far, in order."""
    names: list[str] = []
    monkeypatch.setattr(
        "sa_taskqueue.session.outermost.wakeups.notify", lambda _engine, _table, name: names.append(name)
    )
    return names
