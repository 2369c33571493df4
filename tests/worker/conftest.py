"""What the worker's tests share: a task queue over the table of tests.models, and a look at what is committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import URL, Engine, Table, create_engine
from sqlalchemy.pool import NullPool

from sa_taskqueue.queue import TaskQueue
from tests.models import Task
from tests.sqlite import sqlite_engine
from tests.worker.support import Database


@pytest.fixture
def db(database_url: URL, tasks: Table) -> Iterator[Database]:
    """The test's tables through an engine of their own, whatever engine the worker under test has."""
    sqlite = database_url.drivername.startswith("sqlite")
    engine: Engine = sqlite_engine(database_url) if sqlite else create_engine(database_url, poolclass=NullPool)
    yield Database(engine, tasks)
    engine.dispose()


@pytest.fixture
def queue() -> TaskQueue:
    """A task queue without handlers."""
    return TaskQueue(Task)


@pytest.fixture(params=["sync", "async"])
def worker_engine(request: pytest.FixtureRequest, tasks: Table, engine: Engine, async_engine: Any) -> Any:
    """An Engine, then an AsyncEngine, over the same database."""
    return engine if request.param == "sync" else async_engine
