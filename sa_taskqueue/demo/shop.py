"""A shop in one file: orders, the queue's table, and the receipts that the handler writes."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from sqlalchemy import Engine, ForeignKey, String, Uuid
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.context import TaskContext
from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session import sqlite_engine

HANDLER_SECONDS = 0.05
"""How long one receipt takes to print: long enough that a worker can be killed in the middle of its work."""


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "shop_order"

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(10))


class Task(QueueMixin, Base):
    __tablename__ = "task"


class Receipt(Base):
    """The effect of a task. Nothing is unique here, so that an effect written twice would be seen."""

    __tablename__ = "receipt"

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey(Order.id))
    task_id: Mapped[uuid.UUID] = mapped_column(Uuid)


queue = TaskQueue(Task, default_queue="receipts")


@queue.task
def send_receipt(context: TaskContext, order_id: int) -> None:
    """Print the receipt, and note it in the commit that also completes the task."""
    time.sleep(HANDLER_SECONDS)
    context.session.add(Receipt(order_id=order_id, task_id=context.task.id))


def open_shop(file: Path) -> Engine:
    """The engine of the shop's database."""
    return sqlite_engine(f"sqlite:///{file}")
