"""The tables of the chaos runs: orders, tasks, the effects of handlers, and the database's own journal of the tasks."""

from __future__ import annotations

import datetime as dt
import uuid

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue import CrashNoteMixin, QueueMixin, ReservationMixin
from sa_taskqueue.models.types import TaskId, UtcDateTime


class Base(DeclarativeBase):
    pass


class ChaosTask(QueueMixin, Base):
    __tablename__ = "chaos_task"


class ChaosReservation(ReservationMixin, Base):
    __tablename__ = "chaos_reservation"


class ChaosCrashNote(CrashNoteMixin, Base):
    __tablename__ = "chaos_crash_note"


class ChaosOrder(Base):
    """What a unit of work changes beside enqueueing its task; stored if and only if the task is."""

    __tablename__ = "chaos_order"

    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[uuid.UUID] = mapped_column(TaskId)


class ChaosEffect(Base):
    """Written through ``context.session``. Nothing is unique here: a second effect must be able to show."""

    __tablename__ = "chaos_effect"

    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[uuid.UUID] = mapped_column(TaskId)
    epoch: Mapped[int]


class JournalEntry(Base):
    """One committed change of a task, written by a trigger in the transaction that made the change."""

    __tablename__ = "chaos_journal"

    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[uuid.UUID] = mapped_column(TaskId)
    old_status: Mapped[str | None] = mapped_column(String(9))
    new_status: Mapped[str] = mapped_column(String(9))
    old_epoch: Mapped[int]
    new_epoch: Mapped[int]
    crashed: Mapped[int]
    """By how much ``crashes`` rose."""
    holder: Mapped[str | None] = mapped_column(String(200))
    until: Mapped[dt.datetime | None] = mapped_column(UtcDateTime)
    at: Mapped[dt.datetime] = mapped_column(UtcDateTime)
