"""The tables of the benchmarks: one that holds only the run's own rows, and one for rows that are in the way."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from sqlalchemy import DateTime, Engine, FetchedValue, LargeBinary, String, Uuid, create_engine, make_url
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import JSON

from benchmarks.plain import FAMILIES
from benchmarks.plain.base import PlainQueue
from sa_taskqueue import QueueMixin, ReservationMixin, sqlite_engine
from sa_taskqueue.ids import new_id

Synchronous = Literal["FULL", "NORMAL"]


class Base(DeclarativeBase):
    """The library's side."""


class BenchTask(QueueMixin, Base):
    __tablename__ = "bench_task"


class CrowdedTask(QueueMixin, Base):
    """The same table again; the cases of decay fill it with rows that a claim must not notice."""

    __tablename__ = "bench_crowded_task"


class BenchReservation(ReservationMixin, Base):
    __tablename__ = "bench_reservation"


class BenchEffect(Base):
    """One row for each task of a handler that inserts one."""

    __tablename__ = "bench_effect"

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int]


class BenchSale(Base):
    """The business row of a unit of work."""

    __tablename__ = "bench_sale"

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(20))


MODELS: dict[str, type[Any]] = {model.__tablename__: model for model in (BenchTask, CrowdedTask)}
"""The tables of tasks by name."""


class PlainBase(DeclarativeBase):
    """The floor's side of the ORM: never used to create a table."""


class PlainRow(PlainBase):
    """A plain mapped class over the same columns, in the very table the library writes to."""

    __tablename__ = "bench_task"

    id: Mapped[Any] = mapped_column(
        Uuid().with_variant(LargeBinary(16), "mysql", "mariadb", "sqlite"), primary_key=True
    )
    name: Mapped[str] = mapped_column(String(120))
    queue: Mapped[str] = mapped_column(String(64))
    priority: Mapped[int]
    status: Mapped[str] = mapped_column(String(9))
    body: Mapped[dict[str, Any]] = mapped_column(JSON().with_variant(JSONB(), "postgresql"))
    max_attempts: Mapped[int]
    attempt: Mapped[int]
    crashes: Mapped[int]
    epoch: Mapped[int]
    headers: Mapped[dict[str, Any] | None] = mapped_column(JSON().with_variant(JSONB(), "postgresql"))
    reserved_until: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    reserved_by: Mapped[str | None] = mapped_column(String(200))
    unique_key: Mapped[str | None] = mapped_column(String(255))
    unique_hash: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    unique_until: Mapped[str | None] = mapped_column(String(5))
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON().with_variant(JSONB(), "postgresql"))
    errors: Mapped[list[Any] | None] = mapped_column(JSON().with_variant(JSONB(), "postgresql"))
    result: Mapped[Any] = mapped_column(JSON().with_variant(JSONB(), "postgresql"), nullable=True)
    finished_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    scheduled_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True), server_default=FetchedValue())
    ready_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True), server_default=FetchedValue())
    created_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True), server_default=FetchedValue())
    __mapper_args__ = {"eager_defaults": False}  # noqa: RUF012  (SQLAlchemy reads a plain dict here)


def plain_key(engine: Engine) -> uuid.UUID | bytes:
    """A fresh primary key as `PlainRow` takes it."""
    return new_id() if engine.dialect.name == "postgresql" else new_id().bytes


def make_engine(url: str, *, synchronous: Synchronous = "FULL") -> Engine:
    """The engine of a benchmark; ``synchronous`` matters on SQLite only."""
    if make_url(url).get_backend_name() == "sqlite":
        return sqlite_engine(url, synchronous=synchronous)
    return create_engine(url)


def plain_queue(engine: Engine, table: str) -> PlainQueue:
    """The floor's queue for the engine's database."""
    return FAMILIES[engine.dialect.name](engine, table)


@contextmanager
def fresh_tables(engine: Engine) -> Iterator[None]:
    """The tables, made new and dropped at the end."""
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    try:
        yield
    finally:
        Base.metadata.drop_all(engine)


def empty(engine: Engine, table: str) -> None:
    """Take every row out of the table, and its dead rows with them."""
    statement = "DELETE FROM" if engine.dialect.name == "sqlite" else "TRUNCATE TABLE"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"{statement} {table}")
