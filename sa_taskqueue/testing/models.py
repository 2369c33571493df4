"""The tables of the conformance suite."""

from __future__ import annotations

import uuid

from sqlalchemy import String, Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue.adapters.registry import table_options
from sa_taskqueue.models import CrashNoteMixin, QueueMixin, ReservationMixin


class SuiteBase(DeclarativeBase):
    pass


class SuiteTask(QueueMixin, SuiteBase):
    __tablename__ = "suite_task"


class SuiteCrashNote(CrashNoteMixin, SuiteBase):
    __tablename__ = "suite_crash_note"


class SuiteEffect(SuiteBase):
    """What a caller or a handler has done: one row for each time that was committed."""

    __tablename__ = "suite_effect"
    __table_args__ = (table_options(),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=lambda: str(uuid.uuid4()))
    note: Mapped[str] = mapped_column(String(200))


class ReservedBase(DeclarativeBase):
    """Apart: not every database can have such a table."""


class SuiteReserved(ReservationMixin, ReservedBase):
    __tablename__ = "suite_reserved"


TASKS = SuiteBase.metadata.tables[SuiteTask.__tablename__]
RESERVED = ReservedBase.metadata.tables[SuiteReserved.__tablename__]


def tables_for(reservations: frozenset[str]) -> list[Table]:
    """The tables that a database with these strategies has."""
    tables = list(SuiteBase.metadata.sorted_tables)
    return [*tables, RESERVED] if "reservation-table" in reservations else tables
