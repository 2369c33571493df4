"""A queue table that a test may spoil, a table of the user's own, and a handler that is run nowhere."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue


class Base(DeclarativeBase):
    pass


class Job(QueueMixin, Base):
    __tablename__ = "inputs_job"


class Note(Base):
    __tablename__ = "inputs_note"

    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(40))


producer = TaskQueue(Job)


@producer.task
def work(text: str) -> None:
    """Only enqueued."""
