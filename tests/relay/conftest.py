"""What the relay's tests share: the tables of the outbox's tests, and a way to run relays over either engine."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession
from tests.outbox.conftest import plain_engine, stored, tables  # noqa: F401 - fixtures
from tests.outbox.models import queue
from tests.relay.support import Outbox


@pytest.fixture(params=["sync", "async"])
def relay_engine(request: pytest.FixtureRequest, tables: None, engine: Engine, async_engine: Any) -> Any:  # noqa: F811
    """An Engine, then an AsyncEngine, over the same database."""
    return engine if request.param == "sync" else async_engine


@pytest.fixture
def outbox(plain_engine: Engine, tables: None) -> Outbox:  # noqa: F811
    """Puts messages in and reads rows out, through an engine of its own."""
    return Outbox(plain_engine, sessionmaker(plain_engine, class_=TaskSession, info={"task_queue": queue}))
