"""`enqueue_from` on an SQLite engine that nobody has prepared, whose driver sends BEGIN late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, String, create_engine, delete, func, insert, select, update
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.exceptions import InvalidArguments
from sa_taskqueue.session import TaskSession
from tests.session.models import Base, Job
from tests.session.statement_models import Order, notify

Factory = sessionmaker[TaskSession]


@pytest.fixture
def stock(tmp_path: Path) -> Iterator[Factory]:
    """Three open orders."""
    engine: Engine = create_engine(f"sqlite:///{tmp_path / 'stock.db'}")
    Base.metadata.create_all(engine)
    factory = sessionmaker(engine, class_=TaskSession)
    with factory.begin() as session:
        session.add_all([Order(id=number) for number in (1, 2, 3)])
    yield factory
    engine.dispose()


def seen(factory: Factory) -> tuple[int, list[str]]:
    """The number of tasks, and what the orders say."""
    with factory() as session:
        return session.scalar(select(func.count(Job.id))) or 0, list(session.scalars(select(Order.status)))


STATEMENTS = {
    "update": update(Order).values(status="x"),
    "delete": delete(Order),
    "insert": insert(Order).values([{"id": 4, "status": "x", "total": 0, "tenant": "a"}]),
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_rollback_takes_all_back_and_the_next_one_works(stock: Factory, kind: str) -> None:
    with stock() as session:
        for _ in range(2):
            session.enqueue_from(STATEMENTS[kind], notify, order_id=Order.id)
            session.rollback()
            assert seen(stock) == (0, ["open"] * 3)
        assert session.enqueue_from(STATEMENTS[kind], notify, order_id=Order.id) == (1 if kind == "insert" else 3)
        session.commit()
    assert seen(stock)[0] == (1 if kind == "insert" else 3)


@pytest.mark.parametrize("kind", ["update", "insert"])
def test_after_a_null_the_change_is_not_kept(stock: Factory, kind: str) -> None:
    none = func.nullif(Order.status, "x", type_=String())
    with stock() as session:
        with pytest.raises(InvalidArguments, match="NULL"):
            session.enqueue_from(STATEMENTS[kind], notify, order_id=Order.id, status=none)
        session.commit()
    assert seen(stock) == (0, ["open"] * 3)
