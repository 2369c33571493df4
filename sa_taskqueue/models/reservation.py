"""`ReservationMixin`: a table of reservations, for the strategy `ReservationTable`."""

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import Table, event
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from sa_taskqueue.adapters.registry import reservation_table_options, unlogged
from sa_taskqueue.models.types import TaskId, UtcDateTime


class ReservationMixin:
    """The columns of a table of reservations: `class Reserved(ReservationMixin, Base): __tablename__ = "reserved"`.

    `create_all` makes it UNLOGGED on PostgreSQL and of the MEMORY engine on MySQL and MariaDB: it is written to no log
    and is empty after a crash. Each row has the same width, about 50 bytes.
    """

    @classmethod
    def __table_cls__(cls, *args: Any, **options: Any) -> Table | None:
        make_table = getattr(super(), "__table_cls__", Table)
        table: Table | None = make_table(*args, **{**reservation_table_options(), **options})
        if table is not None:
            event.listen(table, "after_create", unlogged())
        return table

    @declared_attr
    def id(cls) -> Mapped[uuid.UUID]:
        """The reserved task's."""
        return mapped_column("id", TaskId, primary_key=True)

    @declared_attr
    def token(cls) -> Mapped[uuid.UUID]:
        """Made anew for each claim: a reservation that was taken over is not its old holder's any more."""
        return mapped_column("token", TaskId, nullable=False)

    @declared_attr
    def reserved_until(cls) -> Mapped[dt.datetime]:
        """When it expires, by the database's clock."""
        return mapped_column("reserved_until", UtcDateTime, nullable=False)
