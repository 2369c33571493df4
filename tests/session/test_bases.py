"""Enqueueing into the models of other kinds of bases."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, String, Table, inspect
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, Session, mapped_column, registry

from sa_taskqueue.models import QueueDataclassMixin, QueueMixin
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session import TaskSession, duplicate_of, sqlite_engine

ALL = ["declarative", "dataclass", "registry", "renamed attributes", "sqlmodel"]


@functools.cache
def _model(kind: str) -> type[Any]:
    if kind == "sqlmodel":
        sqlmodel = pytest.importorskip("sqlmodel")

        class Modelled(QueueMixin, sqlmodel.SQLModel, table=True):  # type: ignore[name-defined, misc, call-arg]
            __tablename__ = "modelled"
            metadata = MetaData()

        return Modelled
    if kind == "dataclass":

        class DataBase(MappedAsDataclass, DeclarativeBase):
            pass

        class Data(QueueDataclassMixin, DataBase):
            __tablename__ = "data"
            tenant: Mapped[str | None] = mapped_column(String(20), default=None, kw_only=True)

        return Data
    if kind == "registry":
        mapper = registry()

        @mapper.mapped
        class Registered(QueueMixin):
            __tablename__ = "registered"

        return Registered

    class Base(DeclarativeBase):
        pass

    class Plain(QueueMixin, Base):
        __tablename__ = "plain"
        if kind != "declarative":
            tenant: Mapped[str | None] = mapped_column("tenant_name", String(20))

    return Plain


@pytest.fixture(params=ALL)
def model(request: pytest.FixtureRequest) -> type[Any]:
    return _model(request.param)


@pytest.fixture
def engine(model: type[Any], tmp_path: Any) -> Iterator[Engine]:
    engine = sqlite_engine(f"sqlite:///{tmp_path / 'bases.db'}")
    table = inspect(model).local_table
    assert isinstance(table, Table)
    table.metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("key", [None, "k"])
def test_a_task_is_stored_with_the_users_own_column(model: type[Any], engine: Engine, key: str | None) -> None:
    queue = TaskQueue(model)

    @queue.task
    def work(number: int) -> None: ...

    with TaskSession(engine) as session:
        row = session.enqueue(work.using(unique_key=key), 1)
        twin = session.enqueue(work.using(unique_key=key), 2)
        if hasattr(model, "tenant"):
            row.tenant = "acme"
        known = row.id
        session.enqueue(work.using(run_after=timedelta(hours=1)), 4)
        session.commit()
        assert duplicate_of(twin) == (known if key else None)
        session.enqueue_many(work, [{"number": 3}])
        session.commit()
    with Session(engine) as reader:
        found = reader.get_one(model, known)
        assert found.body == '{"number":1}'
        assert getattr(found, "tenant", "acme") == "acme"
        assert reader.query(model).count() == (3 if key else 4)
