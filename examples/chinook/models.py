"""The shop's own tables, the queue's table among them, and what a worker's handler writes."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import ClassVar

from sqlalchemy import Dialect, ForeignKey, Integer, String, Uuid
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from sa_taskqueue import QueueMixin


class Money(TypeDecorator[Decimal]):
    """An exact amount with two decimals, stored as a number of cents: SQLite has no decimal type."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, _dialect: Dialect) -> int | None:
        return None if value is None else int(value * 100)

    def process_result_value(self, value: int | None, _dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value) / 100


class Base(DeclarativeBase):
    """Every table of the example; names carry a prefix, so that the example harms no table of yours."""

    __table_args__: ClassVar[dict[str, str]] = {"mysql_charset": "utf8mb4"}


class Customer(Base):
    __tablename__ = "chinook_customer"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(String(100))
    email: Mapped[str] = mapped_column(String(100))


class Invoice(Base):
    """An order; ``status`` goes from open to complete in the unit of work that also enqueues the task."""

    __tablename__ = "chinook_invoice"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id))
    ordered_at: Mapped[dt.datetime]
    status: Mapped[str] = mapped_column(String(10), default="open")


class InvoiceLine(Base):
    __tablename__ = "chinook_invoice_line"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    invoice_id: Mapped[int] = mapped_column(ForeignKey(Invoice.id), index=True)
    unit_price: Mapped[Decimal] = mapped_column(Money)
    quantity: Mapped[int]


class Task(QueueMixin, Base):
    __tablename__ = "chinook_task"


class Receipt(Base):
    """The effect of a task. Nothing here is unique, so that an effect written twice would be seen."""

    __tablename__ = "chinook_receipt"

    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[uuid.UUID] = mapped_column(Uuid)
    invoice_id: Mapped[int] = mapped_column(ForeignKey(Invoice.id))
    customer: Mapped[str] = mapped_column(String(100))
    total: Mapped[Decimal] = mapped_column(Money)
