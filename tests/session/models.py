"""A queue table with columns and a foreign key of the user's own, its parent, and two handlers."""

from __future__ import annotations

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "session_customer"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40))
    jobs: Mapped[list[Job]] = relationship(back_populates="customer")


class Job(QueueMixin, Base):
    __tablename__ = "session_job"

    tenant: Mapped[str | None] = mapped_column(String(20))
    customer_id: Mapped[int | None] = mapped_column(ForeignKey("session_customer.id"))
    customer: Mapped[Customer | None] = relationship(back_populates="jobs")


queue = TaskQueue(Job)


@queue.task(queue="mail")
def send_receipt(order_id: int, *, lang: str = "en") -> None:
    """Never run here: these tests are about the producer."""


@queue.task
def refresh(what: str) -> None:
    """Never run here."""
