"""A table with a column of each kind, and a handler for each kind of argument."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Any

from sqlalchemy import JSON, BigInteger, Date, DateTime, Double, Enum, LargeBinary, Numeric, String, Text, Uuid
from sqlalchemy.dialects.mysql import DATETIME, LONGTEXT
from sqlalchemy.orm import Mapped, mapped_column

from sa_taskqueue.models.types import TaskId, UtcDateTime
from sa_taskqueue.queue import TaskQueue
from tests.session.models import Base, Job


class Color(enum.Enum):
    RED = "r\\ed"
    BLUE = 'bl"ue'


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Sample(Base):
    """Every kind of column that an argument can be made of."""

    __tablename__ = "session_sample"

    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str | None] = mapped_column(Text().with_variant(LONGTEXT(), "mysql", "mariadb"))
    number: Mapped[int | None] = mapped_column(BigInteger)
    real: Mapped[float | None] = mapped_column(Double)
    amount: Mapped[Decimal | None] = mapped_column(Numeric(12, 4))
    flag: Mapped[bool | None]
    moment: Mapped[dt.datetime | None] = mapped_column(UtcDateTime)
    day: Mapped[dt.date | None] = mapped_column(Date)
    key: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    short_key: Mapped[uuid.UUID | None] = mapped_column(TaskId)
    data: Mapped[bytes | None] = mapped_column(LargeBinary)
    color: Mapped[Color | None] = mapped_column(Enum(Color, native_enum=True, name="session_color"))
    level: Mapped[int | None]
    document: Mapped[Any] = mapped_column(JSON, nullable=True)


class Order(Base):
    """What the statements change."""

    __tablename__ = "session_order"

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(20), default="open")
    customer: Mapped[str | None] = mapped_column(String(40))
    total: Mapped[Decimal] = mapped_column(Numeric(10, 2), default=Decimal(0))
    tenant: Mapped[str] = mapped_column(String(10), default="a")
    at: Mapped[dt.datetime | None] = mapped_column(DateTime().with_variant(DATETIME(fsp=6), "mysql", "mariadb"))


class Line(Base):
    """A row with a key of two columns, one of them text."""

    __tablename__ = "session_line"

    code: Mapped[str] = mapped_column(String(20), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status: Mapped[str] = mapped_column(String(20))


queue = TaskQueue(Job)


@queue.task
def take_all(
    text: str | None,
    number: int | None,
    real: float | None,
    amount: Decimal | None,
    flag: bool | None,
    moment: dt.datetime | None,
    day: dt.date | None,
    key: uuid.UUID | None,
    short_key: uuid.UUID | None,
    data: bytes | None,
    color: Color | None,
    level: Level | None,
    document: Any,
) -> None:
    """Never run here."""


@queue.task(queue="mail")
def notify(order_id: int, status: str = "", *, lang: str = "en", customer: str | None = None) -> None:
    """Never run here."""


@queue.task
def line_changed(code: str, number: int) -> None:
    """Never run here."""
