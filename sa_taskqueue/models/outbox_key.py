"""`OutboxKeyMixin`: one row for each key of the outbox, under whose lock its messages get their order."""

import datetime as dt
import uuid
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Integer
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr

from sa_taskqueue.models.clock import DatabaseClock
from sa_taskqueue.models.columns import ColumnSpec, column_of, literal, string
from sa_taskqueue.models.indexes import IndexRole
from sa_taskqueue.models.table import LibraryTable
from sa_taskqueue.models.types import JsonText, StatusName, TaskId, UtcDateTime
from sa_taskqueue.states import KeyStatus

OUTBOX_KEY_COLUMNS: dict[str, ColumnSpec] = {
    "id": ColumnSpec(TaskId),
    "key": ColumnSpec(string(1024)),
    "next_seq": ColumnSpec(BigInteger, server_default=literal("1")),
    "sent_seq": ColumnSpec(BigInteger, server_default=literal("0")),
    "status": ColumnSpec(lambda: StatusName(KeyStatus), server_default=literal("'IDLE'")),
    "due_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "epoch": ColumnSpec(BigInteger, server_default=literal("0")),
    "reserved_by": ColumnSpec(string(200), nullable=True),
    "fails": ColumnSpec(Integer, server_default=literal("0")),
    "error": ColumnSpec(JsonText, nullable=True),
    "created_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
}

# One range in the order of one column: a key that is leased or in a back-off lies behind the clock.
OUTBOX_KEY_INDEXES = (IndexRole("claim", ("status", "due_at", "id"), (KeyStatus.READY,)),)


def _column(name: str, **options: Any) -> MappedColumn[Any]:
    return column_of(OUTBOX_KEY_COLUMNS, name, **options)


class OutboxKeyMixin(LibraryTable):
    """The columns of a table of keys: `class OutboxKey(OutboxKeyMixin, Base): __tablename__ = "outbox_key"`.

    A row is kept for ever: without it the key's numbers would start again, and consumers take the messages for old.
    """

    __index_roles__: ClassVar[Any] = OUTBOX_KEY_INDEXES

    @declared_attr
    def id(cls) -> Mapped[uuid.UUID]:
        """The first 16 bytes of the SHA-256 of the key."""
        return _column("id")

    @declared_attr
    def key(cls) -> Mapped[str]:
        """The key, for people."""
        return _column("key")

    @declared_attr
    def next_seq(cls) -> Mapped[int]:
        """The number that the next message of the key will get."""
        return _column("next_seq")

    @declared_attr
    def sent_seq(cls) -> Mapped[int]:
        """The number up to which all messages have left."""
        return _column("sent_seq")

    @declared_attr
    def status(cls) -> Mapped[KeyStatus]:
        """Whether there is something to send, or the key is held back."""
        return _column("status")

    @declared_attr
    def due_at(cls) -> Mapped[dt.datetime]:
        """When a relay may take the key: at once, after a back-off, or when the lease of the relay that has it ends."""
        return _column("due_at")

    @declared_attr
    def epoch(cls) -> Mapped[int]:
        """The fencing token: raised at every change of holder and by every operator's action."""
        return _column("epoch")

    @declared_attr
    def reserved_by(cls) -> Mapped[str | None]:
        """The relay that holds the key, for people; None: it is free."""
        return _column("reserved_by")

    @declared_attr
    def fails(cls) -> Mapped[int]:
        """How often in a row its first message was not taken by the broker."""
        return _column("fails")

    @declared_attr
    def error(cls) -> Mapped[str | None]:
        """JSON object text: why the first message was not taken the last time."""
        return _column("error")

    @declared_attr
    def created_at(cls) -> Mapped[dt.datetime]:
        """The database's clock at the INSERT."""
        return _column("created_at")
