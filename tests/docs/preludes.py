"""What the snippets of a page may use without having made it: the tutorial's classes and an engine on a file."""

from __future__ import annotations

import functools
from typing import Any

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

import sa_taskqueue
from sa_taskqueue import QueueMixin, TaskSession, Worker, sqlite_engine

#: Pages whose snippets make all they use.
COMPLETE = {"docs/tutorial.md"}


def prelude(page: str) -> dict[str, Any]:
    """The names that the page's first snippet finds."""
    if page in COMPLETE:
        return {}
    names = _shop()
    if page == "README.md":
        names |= _readme(names)
    return names


def _shop() -> dict[str, Any]:
    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = mapped_column(primary_key=True)
        status: Mapped[str]

    class Task(QueueMixin, Base):
        __tablename__ = "task"

    engine = sqlite_engine("sqlite:///prelude.db")
    Base.metadata.create_all(engine)
    return {"Base": Base, "Order": Order, "Task": Task, "engine": engine}


def _readme(names: dict[str, Any]) -> dict[str, Any]:
    """The README shows the middle of a program: with all names imported, an order, and a worker that ends."""
    public = {name: getattr(sa_taskqueue, name) for name in sa_taskqueue.__all__ if name != "AsyncTaskSession"}
    base = type("Base", (DeclarativeBase,), {})
    with sessionmaker(names["engine"], class_=TaskSession, expire_on_commit=False).begin() as session:
        order = names["Order"](status="open")
        session.add(order)
    worker = functools.partial(Worker, drain=True)
    return {
        **public,
        "Base": base,
        "Worker": worker,
        "sessionmaker": sessionmaker,
        "order": order,
        "InvalidAddress": ValueError,
    }
