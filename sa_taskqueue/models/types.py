"""Column types that mean the same on every database; what each database stores is its adapter's word.

The values seen in Python never differ: `uuid.UUID`, aware UTC `datetime` with microseconds, JSON as text, `bytes`.
"""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from typing import Any

from sqlalchemy import DateTime, LargeBinary, String, Text, Uuid
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeDecorator, TypeEngine

from sa_taskqueue.adapters.derived import JsonKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import NaiveDatetime
from sa_taskqueue.ids import uuid_of
from sa_taskqueue.states import Status


class TaskId(TypeDecorator[uuid.UUID]):
    """A UUID in 16 bytes: the database's own type where it has one, else bytes in the order of the canonical text."""

    impl = Uuid
    cache_ok = True
    json_kind = JsonKind.UUID

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return adapter_for(dialect).id_type()

    def process_bind_param(self, value: uuid.UUID | None, dialect: Dialect) -> uuid.UUID | bytes | None:
        return value if value is None or isinstance(self.impl_instance, Uuid) else value.bytes

    def process_result_value(self, value: Any, dialect: Dialect) -> uuid.UUID | None:
        return value if value is None or isinstance(value, uuid.UUID) else uuid_of(int.from_bytes(bytes(value)))


class UuidText(TypeDecorator[uuid.UUID]):
    """A UUID as other programs read it from the database's log: the database's own type, else its canonical text."""

    impl = String(36)
    cache_ok = True
    json_kind = JsonKind.UUID

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        native = adapter_for(dialect).id_type()
        return native if isinstance(native, Uuid) else String(36)

    def process_bind_param(self, value: uuid.UUID | None, dialect: Dialect) -> uuid.UUID | str | None:
        return value if value is None or isinstance(self.impl_instance, Uuid) else str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> uuid.UUID | None:
        return value if value is None or isinstance(value, uuid.UUID) else uuid.UUID(value)


class UtcDateTime(TypeDecorator[dt.datetime]):
    """A moment with microseconds, stored as UTC and read back as aware UTC. `NaiveDatetime` refuses any other."""

    impl = DateTime
    cache_ok = True
    json_kind = JsonKind.DATETIME

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return adapter_for(dialect).timestamp_type()

    def coerce_compared_value(self, op: OperatorType | None, value: Any) -> TypeEngine[Any]:
        if value is None or isinstance(value, dt.datetime):
            return self
        return self.impl_instance.coerce_compared_value(op, value)

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        if value is None:
            return None
        if value.utcoffset() is None:
            raise NaiveDatetime(field=str(value))
        moment = value.astimezone(dt.UTC)
        return moment if getattr(self.impl_instance, "timezone", False) else moment.replace(tzinfo=None)

    def process_result_value(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        if value is None or value.tzinfo is dt.UTC:
            return value
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


class JsonText(TypeDecorator[str]):
    """JSON that the library has encoded: text in Python, so that the engine's own serializer never encodes it again."""

    impl = Text
    cache_ok = True
    json_kind = JsonKind.JSON

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return adapter_for(dialect).json_type()


class KeyHash(TypeDecorator[bytes]):
    """The 32 bytes of a SHA-256."""

    impl = LargeBinary
    cache_ok = True
    json_kind = JsonKind.BYTES

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return adapter_for(dialect).hash_type()

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        return None if value is None else bytes(value)


class StatusName(TypeDecorator[str]):
    """The name of a status. A word this version does not know is read as it stands: a newer one may have written it."""

    impl = String
    cache_ok = True
    json_kind = JsonKind.TEXT

    def __init__(self, kind: type[enum.StrEnum] = Status) -> None:
        super().__init__(9)
        self.kind = kind

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else self.kind.__members__.get(value, value)
