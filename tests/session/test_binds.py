"""Sessions over several databases: the task goes to the one its model is bound to, and shares the commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from sa_taskqueue.exceptions import AutocommitEngine
from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session import TaskSession, sqlite_engine


class Base(DeclarativeBase):
    pass


class Here(QueueMixin, Base):
    __tablename__ = "here"


class There(QueueMixin, Base):
    __tablename__ = "there"


class Note(Base):
    __tablename__ = "note"

    id: Mapped[int] = mapped_column(primary_key=True)


here, there = TaskQueue(Here), TaskQueue(There)


@here.task(queue="near")
def near(number: int) -> None: ...


@there.task(queue="far")
def far(number: int) -> None: ...


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[str, Engine]]:
    made = {name: sqlite_engine(f"sqlite:///{tmp_path / name}.db") for name in ("here", "there")}
    for engine in made.values():
        Base.metadata.create_all(engine)
    yield made
    for engine in made.values():
        engine.dispose()


@pytest.fixture
def factory(engines: dict[str, Engine]) -> sessionmaker[TaskSession]:
    return sessionmaker(
        class_=TaskSession, binds={Here: engines["here"], Note: engines["here"], There: engines["there"]}
    )


def _rows(engine: Engine, model: type[Any]) -> int:
    with Session(engine) as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("commit", [True, False])
def test_each_task_is_in_the_database_of_its_model(
    factory: sessionmaker[TaskSession], engines: dict[str, Engine], woken: list[str], key: str | None, commit: bool
) -> None:
    with factory() as session:
        session.add(Note())
        session.enqueue(near.using(unique_key=key), 1)
        session.enqueue(far.using(unique_key=key), 2)
        session.enqueue_many(far, [{"number": 3}])
        assert woken == []
        if commit:
            session.commit()
        else:
            session.rollback()
    found = [_rows(engines[name], model) for name in ("here", "there") for model in (Here, There)]
    assert found == ([1, 0, 0, 2] if commit else [0, 0, 0, 0])
    assert sorted(woken) == (["far", "near"] if commit else [])


def test_only_the_databases_with_tasks_are_checked(engines: dict[str, Engine]) -> None:
    autocommit = engines["there"].execution_options(isolation_level="AUTOCOMMIT")
    with TaskSession(binds={Here: engines["here"], There: autocommit}) as session:
        session.enqueue(near, 1)
        session.commit()
        session.enqueue(far, 1)
        with pytest.raises(AutocommitEngine):
            session.commit()
    assert (_rows(engines["here"], Here), _rows(engines["there"], There)) == (1, 0)
