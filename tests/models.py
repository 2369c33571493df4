"""The mapped classes that most tests share: one queue table, one business table, one table of effects."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.models import CrashNoteMixin, QueueMixin


class Base(DeclarativeBase):
    pass


class Task(QueueMixin, Base):
    __tablename__ = "task"


class CrashNote(CrashNoteMixin, Base):
    __tablename__ = "task_crash_note"


class Order(Base):
    """What the unit of work changes beside the task."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(20), default="open")


class Effect(Base):
    """One row for each time a handler's effect was committed: counted to find effects lost or done twice."""

    __tablename__ = "effect"

    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[str] = mapped_column(String(40), index=True)
    note: Mapped[str] = mapped_column(String(100), default="")
