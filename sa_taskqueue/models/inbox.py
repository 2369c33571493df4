"""`InboxMixin`: a table of what was received already."""

import datetime as dt
import uuid
from typing import Any, ClassVar

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr

from sa_taskqueue.models.clock import DatabaseClock
from sa_taskqueue.models.columns import ColumnSpec, column_of, string
from sa_taskqueue.models.indexes import IndexRole
from sa_taskqueue.models.table import LibraryTable
from sa_taskqueue.models.types import TaskId, UtcDateTime

INBOX_COLUMNS: dict[str, ColumnSpec] = {
    "id": ColumnSpec(TaskId),
    "source": ColumnSpec(string(255), nullable=True),
    "message_id": ColumnSpec(string(1024), nullable=True),
    "key": ColumnSpec(string(1024), nullable=True),
    "seq": ColumnSpec(BigInteger, nullable=True),
    "seen_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
}

INBOX_INDEXES = (IndexRole("prune", ("seen_at", "id")),)


def _column(name: str, **options: Any) -> MappedColumn[Any]:
    return column_of(INBOX_COLUMNS, name, **options)


class InboxMixin(LibraryTable):
    """The columns of an inbox: `class Inbox(InboxMixin, Base): __tablename__ = "inbox"`.

    One row for each message that was received without a sequence number, and one for each key, which holds the number
    that was applied last.
    """

    __index_roles__: ClassVar[Any] = INBOX_INDEXES

    @declared_attr
    def id(cls) -> Mapped[uuid.UUID]:
        """The first 16 bytes of the SHA-256 of the source and the message's id, or of the source and the key."""
        return _column("id")

    @declared_attr
    def source(cls) -> Mapped[str | None]:
        """Who sent the message; None: nobody in particular."""
        return _column("source")

    @declared_attr
    def message_id(cls) -> Mapped[str | None]:
        """The message's id; in a key's row that of the message applied last."""
        return _column("message_id")

    @declared_attr
    def key(cls) -> Mapped[str | None]:
        """The key of an ordered message."""
        return _column("key")

    @declared_attr
    def seq(cls) -> Mapped[int | None]:
        """In a key's row, the number that was applied last."""
        return _column("seq")

    @declared_attr
    def seen_at(cls) -> Mapped[dt.datetime]:
        """The database's clock when it was written or, in a key's row, last changed."""
        return _column("seen_at")
