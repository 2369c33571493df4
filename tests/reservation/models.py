"""The table of reservations of these tests, apart from those that all tests empty in one transaction: GTID consistency
on MySQL forbids to write a MEMORY table in a transaction of several statements."""

from __future__ import annotations

from sqlalchemy.orm import DeclarativeBase

from sa_taskqueue.models import ReservationMixin


class ReservedBase(DeclarativeBase):
    pass


class Reserved(ReservationMixin, ReservedBase):
    __tablename__ = "reserved"


RESERVED = ReservedBase.metadata.tables["reserved"]
