"""`OutboxMixin`: a table of messages that the relay carries to a broker."""

import datetime as dt
import uuid
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Integer, inspect
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr

from sa_taskqueue.ids import new_id
from sa_taskqueue.models.clock import DatabaseClock
from sa_taskqueue.models.columns import ColumnSpec, column_of, literal, string
from sa_taskqueue.models.indexes import IndexRole
from sa_taskqueue.models.table import LibraryTable
from sa_taskqueue.models.types import JsonText, StatusName, TaskId, UtcDateTime
from sa_taskqueue.states import MessageStatus

OUTBOX_COLUMNS: dict[str, ColumnSpec] = {
    "id": ColumnSpec(TaskId),
    "topic": ColumnSpec(string(255)),
    "type": ColumnSpec(string(255), nullable=True),
    "key": ColumnSpec(string(1024), nullable=True),
    "key_hash": ColumnSpec(TaskId, nullable=True),
    "seq": ColumnSpec(BigInteger, nullable=True),
    "payload": ColumnSpec(JsonText),
    "headers": ColumnSpec(JsonText, nullable=True),
    "status": ColumnSpec(lambda: StatusName(MessageStatus), server_default=literal("'NEW'")),
    "scheduled_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "ready_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "attempt": ColumnSpec(Integer, server_default=literal("0")),
    "epoch": ColumnSpec(BigInteger, server_default=literal("0")),
    "reserved_until": ColumnSpec(UtcDateTime, nullable=True),
    "reserved_by": ColumnSpec(string(200), nullable=True),
    "error": ColumnSpec(JsonText, nullable=True),
    "created_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
    "sent_at": ColumnSpec(UtcDateTime, nullable=True),
}

# A row with a key is in the claim's way only until it has its number: then it is QUEUED, its key is claimed. Without
# that status the claim would need `key_hash IS NULL`: MariaDB and MySQL, which have no partial indexes, would walk over
# the rows of keys, or with that column in the index PostgreSQL would sort all rows (10.11, 9.7, 15.18, 2026-12-01).
# The numbers of a key are not made unique by an index: to look for duplicates MySQL and MariaDB lock the gap behind the
# number at REPEATABLE READ, and every other publisher waited for the commit (9.7, 10.11, 2026-12-01).
OUTBOX_INDEXES = (
    IndexRole("claim", ("status", "ready_at", "id"), (MessageStatus.NEW,)),
    IndexRole("sequence", ("key_hash", "seq"), also=lambda table: table.c.seq.is_not(None)),
    IndexRole("promote", ("status", "scheduled_at", "id"), (MessageStatus.SCHEDULED,)),
    IndexRole("take_over", ("status", "reserved_until", "id"), (MessageStatus.RUNNING,)),
    IndexRole("prune", ("status", "sent_at", "id"), (MessageStatus.FAILED, MessageStatus.SENT)),
)


def _column(name: str, **options: Any) -> MappedColumn[Any]:
    return column_of(OUTBOX_COLUMNS, name, **options)


class OutboxMixin(LibraryTable):
    """The columns of an outbox: `class Outbox(OutboxMixin, Base): __tablename__ = "outbox"`.

    A row is written by `session.publish`, in the transaction of the change that it tells about. All datetimes are aware
    UTC.
    """

    __index_roles__: ClassVar[Any] = OUTBOX_INDEXES

    @declared_attr
    def id(cls) -> Mapped[uuid.UUID]:
        """UUIDv7 made by the client: the message's id in every broker."""
        return _column("id", default=new_id)

    @declared_attr
    def topic(cls) -> Mapped[str]:
        """Where the message goes: topic, routing key, subject or stream, as the broker calls it."""
        return _column("topic")

    @declared_attr
    def type(cls) -> Mapped[str | None]:
        """The kind of event, for consumers; None: the topic says it."""
        return _column("type")

    @declared_attr
    def key(cls) -> Mapped[str | None]:
        """The key as text: what the message is about, and the partition it goes to."""
        return _column("key")

    @declared_attr
    def key_hash(cls) -> Mapped[uuid.UUID | None]:
        """The id of the key's row in the table of keys; None: no key orders this message."""
        return _column("key_hash")

    @declared_attr
    def seq(cls) -> Mapped[int | None]:
        """The place among the messages of the key, from 1 without gaps; None: not yet, or not ordered."""
        return _column("seq")

    @declared_attr
    def payload(cls) -> Mapped[str]:
        """JSON text: any value."""
        return _column("payload")

    @declared_attr
    def headers(cls) -> Mapped[str | None]:
        """JSON object text: strings that go beside the payload."""
        return _column("headers")

    @declared_attr
    def status(cls) -> Mapped[MessageStatus]:
        """Where the message stands."""
        return _column("status")

    @declared_attr
    def scheduled_at(cls) -> Mapped[dt.datetime]:
        """When it is due: set by `run_after`, moved by a back-off."""
        return _column("scheduled_at")

    @declared_attr
    def ready_at(cls) -> Mapped[dt.datetime]:
        """The database's clock when the row became NEW; the claim of unordered rows goes by it."""
        return _column("ready_at")

    @declared_attr
    def attempt(cls) -> Mapped[int]:
        """How often it was given to the broker, or claimed for that."""
        return _column("attempt")

    @declared_attr
    def epoch(cls) -> Mapped[int]:
        """The fencing token of a row without a key: raised at every change of holder and by an operator's action."""
        return _column("epoch")

    @declared_attr
    def reserved_until(cls) -> Mapped[dt.datetime | None]:
        """The end of the relay's lease, by the database's clock."""
        return _column("reserved_until")

    @declared_attr
    def reserved_by(cls) -> Mapped[str | None]:
        """The relay that holds it, for people."""
        return _column("reserved_by")

    @declared_attr
    def error(cls) -> Mapped[str | None]:
        """JSON object text: why the broker did not take it the last time."""
        return _column("error")

    @declared_attr
    def created_at(cls) -> Mapped[dt.datetime]:
        """The database's clock at the INSERT."""
        return _column("created_at")

    @declared_attr
    def sent_at(cls) -> Mapped[dt.datetime | None]:
        """The database's clock when the broker had it for sure, or when the message was given up (FAILED)."""
        return _column("sent_at")

    def __repr__(self) -> str:
        """What is known without a query: an expired row still has its id."""
        state = inspect(self)
        key = state.identity[0] if state.identity else state.dict.get("id")
        known = (key, state.dict.get("topic"), state.dict.get("status"))
        return f"<{' '.join([type(self).__name__, *(str(each) for each in known if each is not None)])}>"
