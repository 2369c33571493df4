"""Tables made for each test, because tests of bad input spoil them, and every way to store a task in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Engine, Table, create_engine, event
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from sa_taskqueue.session import TaskSession, enqueue, install
from tests.inputs.models import Base, Job, work
from tests.sqlite import sqlite_engine
from tests.worker.support import Database

Produce = Callable[[Session], None]

MANY = [{"text": str(n)} for n in range(200)]
"""Enough for COPY."""


def _enqueue(session: Session) -> None:
    enqueue(session, work, "one")
    session.flush()


def _at_commit(session: Session) -> None:
    enqueue(session, work, "one")
    session.commit()


def _keyed(session: Session) -> None:
    enqueue(session, work.using(unique_key="one"), "one")
    session.flush()


def _many(session: Any) -> None:
    session.enqueue_many(work, MANY)


def _many_keyed(session: Any) -> None:
    session.enqueue_many(work, [work.using(unique_key=str(n)).new(text="") for n in range(3)])


PRODUCERS: dict[str, Produce] = {
    "flush": _enqueue,
    "commit": _at_commit,
    "keyed": _keyed,
    "many": _many,
    "many-keyed": _many_keyed,
}


@pytest.fixture(params=PRODUCERS)
def produce(request: pytest.FixtureRequest) -> Produce:
    """Each way to store tasks in a TaskSession, up to the statement."""
    return PRODUCERS[request.param]


@pytest.fixture(params=["TaskSession", "installed", "function"])
def opened(request: pytest.FixtureRequest, engine: Engine) -> Iterator[Session]:
    """A session of each kind that `enqueue` takes."""
    factories: dict[str, Callable[[], Session]] = {
        "TaskSession": lambda: TaskSession(engine),
        "installed": install(sessionmaker(engine)),
        "function": lambda: Session(engine),
    }
    with factories[request.param]() as session:
        yield session


@pytest.fixture
def admin(database_url: URL) -> Iterator[Engine]:
    """An engine beside those under test, which may do everything."""
    sqlite = database_url.drivername.startswith("sqlite")
    engine: Engine = sqlite_engine(database_url) if sqlite else create_engine(database_url, poolclass=NullPool)
    yield engine
    engine.dispose()


@pytest.fixture
def jobs(admin: Engine) -> Iterator[Table]:
    """The tables, new and empty."""
    Base.metadata.drop_all(admin)
    Base.metadata.create_all(admin)
    yield Base.metadata.tables[Job.__tablename__]
    Base.metadata.drop_all(admin)


@pytest.fixture
def db(admin: Engine, jobs: Table) -> Database:
    """Puts tasks in and reads what is committed."""
    return Database(admin, jobs)


READ_ONLY = {
    "postgresql": "SET default_transaction_read_only = on",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}


@pytest.fixture
def read_only(jobs: Table, url: URL) -> Iterator[Engine]:
    """An engine whose connections may not write."""
    if url.get_backend_name() == "sqlite":
        engine = sqlite_engine(url.set(database=f"file:{url.database}", query={"mode": "ro", "uri": "true"}))
    else:
        engine = create_engine(url, poolclass=NullPool)
        on_connect(engine, READ_ONLY[url.get_backend_name()])
    yield engine
    engine.dispose()


def on_connect(engine: Engine, statement: str) -> None:
    """Send the statement on each new connection."""

    @event.listens_for(engine, "connect")
    def send(dbapi_connection: Any, _record: object) -> None:
        cursor = dbapi_connection.cursor()
        cursor.execute(statement)
        cursor.close()
        dbapi_connection.commit()
