"""A message whose payload and key are made by SQL from the columns of another row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Text, bindparam
from sqlalchemy.types import NullType

from sa_taskqueue.adapters.derived import JsonKind, Unfit, held_as, kind_of
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.columns import ColumnArguments
from sa_taskqueue.exceptions import InvalidMessage
from sa_taskqueue.ids import new_id
from sa_taskqueue.states import MessageStatus

if TYPE_CHECKING:
    from sqlalchemy import Dialect

    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.queue import TaskQueue

Values = dict[str, ColumnElement[Any]]


class MessageColumns:
    """A message whose payload and key may be made from columns."""

    def __init__(self, plain: NewMessage, payload: object, key: ColumnElement[Any] | None) -> None:
        self.plain = plain
        self.key = key
        self.payload: ColumnArguments | None = None
        if isinstance(payload, Mapping):
            self.payload = ColumnArguments("", payload, not_null=frozenset(), certain=False, refusal=_refused_payload)

    @property
    def numbered(self) -> bool:
        """Whether the messages are to get numbers."""
        return self.plain.key_hash is not None and not self.plain.waits

    def check(self) -> None:
        """Raise InvalidMessage before any SQL."""
        if self.payload is not None:
            self.payload.check(None)
        if self.key is None:
            return
        if isinstance(self.key.type, NullType):
            raise InvalidMessage(field="key", reason="its SQL type is not known; give it one: type_coerce(..., String)")
        try:
            kind = kind_of(self.key.type)
        except Unfit as unfit:
            raise InvalidMessage(field="key", reason=str(unfit)) from None
        if kind not in (JsonKind.TEXT, JsonKind.INTEGER, JsonKind.UUID):
            reason = f"its column holds {kind.value}, not text, whole numbers or UUIDs; use cast(..., String)"
            raise InvalidMessage(field="key", reason=reason)

    def values(self, queue: TaskQueue, dialect: Dialect, *, mark: bool) -> tuple[Values, Values]:
        """The columns of the outbox: those that need no other row, and those made from one.

        With ``mark`` each row says in ``reserved_by`` which statement made it.
        """
        plain, table, adapter = self.plain, queue.outbox_table, adapter_for(dialect)
        derivation = adapter.derivation()
        if derivation is None:
            raise ValueError(f"{adapter.name} makes no values by SQL")
        constants: dict[str, Any] = (
            {"aggregatetype": plain.topic, "type": plain.type or plain.topic}
            if queue.for_debezium
            else {"topic": plain.topic, "type": plain.type}
        )
        constants["headers"] = plain.headers
        if plain.waits:
            constants["status"] = MessageStatus.SCHEDULED
        if plain.run_at is not None:
            constants["scheduled_at"] = plain.run_at
        if mark:
            constants["reserved_by"] = str(new_id())
        if self.key is None and not queue.for_debezium:
            constants |= {"key": plain.key, "key_hash": plain.key_hash}
        elif self.key is None:
            constants["aggregateid"] = plain.key
        new_id_ = derivation.new_text_id() if queue.for_debezium else derivation.new_id()
        values: dict[str, ColumnElement[Any]] = {"id": new_id_}
        for name, value in constants.items():
            if value is not None:
                values[name] = bindparam(None, value, type_=table.c[name].type)
        if plain.delay is not None:
            values["scheduled_at"] = adapter.after(plain.delay.total_seconds())
        derived: dict[str, ColumnElement[Any]] = {}
        if self.payload is not None:
            derived["payload"] = self.payload.json_object(None, derivation, dialect, queue.max_body)
        else:
            derived["payload"] = adapter.json(bindparam(None, plain.payload, type_=Text()))
        if self.key is not None:
            text = derivation.key_text(self.key, held_as(self.key.type, dialect))
            derived["aggregateid" if queue.for_debezium else "key"] = text
            if plain.key_hash is not None:
                derived["key_hash"] = derivation.key_hash(text)
        return values, derived


def _refused_payload(reason: str) -> Exception:
    return InvalidMessage(field="payload", reason=reason)
