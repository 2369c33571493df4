"""`DebeziumOutboxMixin`: the outbox as Debezium's event router reads it from the database's log."""

import datetime as dt
import uuid
from typing import Any, ClassVar

from sqlalchemy.orm import Mapped, MappedColumn, declared_attr

from sa_taskqueue.ids import new_id
from sa_taskqueue.models.clock import DatabaseClock
from sa_taskqueue.models.columns import ColumnSpec, column_of, string
from sa_taskqueue.models.indexes import IndexRole
from sa_taskqueue.models.table import LibraryTable
from sa_taskqueue.models.types import JsonText, UtcDateTime, UuidText

DEBEZIUM_COLUMNS: dict[str, ColumnSpec] = {
    "id": ColumnSpec(UuidText),
    "aggregatetype": ColumnSpec(string(255)),
    "aggregateid": ColumnSpec(string(1024), nullable=True),
    "type": ColumnSpec(string(255)),
    "payload": ColumnSpec(JsonText),
    "headers": ColumnSpec(JsonText, nullable=True),
    "created_at": ColumnSpec(UtcDateTime, server_default=DatabaseClock),
}

DEBEZIUM_INDEXES = (IndexRole("prune", ("created_at", "id")),)


def _column(name: str, **options: Any) -> MappedColumn[Any]:
    return column_of(DEBEZIUM_COLUMNS, name, **options)


class DebeziumOutboxMixin(LibraryTable):
    """The columns of an outbox for Debezium: `class Outbox(DebeziumOutboxMixin, Base): __tablename__ = "outbox"`.

    Rows are inserted and, when they are old, deleted, never changed: the event router refuses an UPDATE. No relay reads
    the table; Debezium takes the rows from the database's log, in the order of the commits.
    """

    __index_roles__: ClassVar[Any] = DEBEZIUM_INDEXES

    @declared_attr
    def id(cls) -> Mapped[uuid.UUID]:
        """UUIDv7 made by the client; text where the database has no type for it."""
        return _column("id", default=new_id)

    @declared_attr
    def aggregatetype(cls) -> Mapped[str]:
        """The topic: what Debezium routes by."""
        return _column("aggregatetype")

    @declared_attr
    def aggregateid(cls) -> Mapped[str | None]:
        """The key of the message in Kafka."""
        return _column("aggregateid")

    @declared_attr
    def type(cls) -> Mapped[str]:
        """The kind of event."""
        return _column("type")

    @declared_attr
    def payload(cls) -> Mapped[str]:
        """JSON text: any value."""
        return _column("payload")

    @declared_attr
    def headers(cls) -> Mapped[str | None]:
        """JSON object text: strings that go beside the payload."""
        return _column("headers")

    @declared_attr
    def created_at(cls) -> Mapped[dt.datetime]:
        """The database's clock at the INSERT."""
        return _column("created_at")
