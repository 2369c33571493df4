"""Fixtures of the hot path's tests: a bench of one table, the library's own statements and the portable ones."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, Table

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.mysql import MySQLTypes
from sa_taskqueue.adapters.postgresql import PostgreSQLTypes
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.adapters.sqlite import SQLite
from tests.store.bench import Bench


@pytest.fixture
def bench(engine: Engine, tasks: Table) -> Bench:
    """The table with the statements of its own database."""
    return Bench(_isolated(engine), tasks)


@pytest.fixture(params=["own", "portable"])
def every_bench(request: pytest.FixtureRequest, engine: Engine, tasks: Table) -> Bench:
    """The same rules hold for the statements of the database and for those of servers too old for them."""
    isolated = _isolated(engine)
    return Bench(isolated, tasks, _portable(isolated) if request.param == "portable" else None)


def _isolated(engine: Engine) -> Engine:
    with engine.connect() as connection:
        level = adapter_for(connection.dialect).worker_isolation
    return engine if level is None else engine.execution_options(isolation_level=level)


def _portable(engine: Engine) -> Adapter:
    """What the registry takes for a server that is too old."""
    if engine.dialect.name == "postgresql":
        return PostgreSQLTypes(engine.dialect)
    if engine.dialect.name == "sqlite":
        adapter = SQLite(engine.dialect)
        adapter.version = (3, 34, 1)
        return adapter
    return MySQLTypes(engine.dialect)
