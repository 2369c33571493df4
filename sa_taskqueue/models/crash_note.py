"""`CrashNoteMixin`: the side table of strategies that write nothing to the task's row before the work."""

import datetime as dt
import uuid
from typing import Any, ClassVar

from sqlalchemy import Integer, String, Table
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from sa_taskqueue.adapters.registry import table_options
from sa_taskqueue.models.clock import DatabaseClock
from sa_taskqueue.models.types import TaskId, UtcDateTime


class CrashNoteMixin:
    """One row per attempt that has begun: `class CrashNote(CrashNoteMixin, Base): __tablename__ = "task_crash_note"`.

    No foreign key leads to the task: its check would wait for the lock on the task's row.
    """

    __mapper_args__: ClassVar[Any] = {"eager_defaults": False}

    @classmethod
    def __table_cls__(cls, *args: Any, **options: Any) -> Table:
        return Table(*args, **{**table_options(), **options})

    @declared_attr
    def task_id(cls) -> Mapped[uuid.UUID]:
        """The task."""
        return mapped_column("task_id", TaskId(), primary_key=True)

    @declared_attr
    def attempt(cls) -> Mapped[int]:
        """The attempt that has begun."""
        return mapped_column("attempt", Integer(), nullable=False)

    @declared_attr
    def by(cls) -> Mapped[str]:
        """The worker, for people."""
        return mapped_column("by", String(200), nullable=False)

    @declared_attr
    def at(cls) -> Mapped[dt.datetime]:
        """When it began, by the database's clock."""
        return mapped_column("at", UtcDateTime(), nullable=False, server_default=DatabaseClock())
