"""A message for the outbox, everything in it checked before anything is sent to the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sa_taskqueue import codec, telemetry, validation
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.ids import new_id
from sa_taskqueue.models.keys import key_hash

TOPIC_LIMIT = 255
KEY_LIMIT = validation.UNIQUE_KEY_LIMIT


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message ready to be stored; made by `TaskQueue.message`.

    At most one of ``run_at`` (UTC) and ``delay`` is set; with neither it is due at once. ``payload`` is JSON text,
    ``headers`` a JSON object as text. With ``key_hash`` it is ordered among the messages of its key.
    """

    id: UUID
    topic: str
    type: str | None
    key: str | None
    key_hash: UUID | None
    payload: str
    headers: str | None
    run_at: datetime | None
    delay: timedelta | None

    @property
    def waits(self) -> bool:
        """Whether it is not due yet."""
        return self.run_at is not None or self.delay is not None


def build(
    topic: str,
    payload: object,
    *,
    key: str | None,
    headers: Mapping[str, str] | None,
    type: str | None,  # noqa: A002 - it is the column's name
    run_after: datetime | timedelta | None,
    ordered: bool,
    id: UUID | None,  # noqa: A002 - it is the column's name
    limit: int,
) -> NewMessage:
    """The message as it will be stored; raises InvalidTask for what cannot be. ``limit`` is in bytes of JSON."""
    run_at, delay = validation.check_run_after(run_after)
    if id is not None and not isinstance(id, UUID):
        raise InvalidSetting(setting="id", value=id, allowed="a uuid.UUID")
    carried = telemetry.carried()
    if carried and (headers is None or isinstance(headers, Mapping)):
        headers = {**carried, **(headers or {})}
    topic = validation.check_word("topic", topic, TOPIC_LIMIT)
    key = None if key is None else validation.check_message_text("key", key, KEY_LIMIT)
    return NewMessage(
        id=id or new_id(),
        topic=topic,
        type=None if type is None else validation.check_word("type", type, TOPIC_LIMIT),
        key=key,
        key_hash=key_hash(key) if key is not None and ordered else None,
        payload=codec.encode(payload, limit=limit, what="payload"),
        headers=None if headers is None else validation.check_headers(headers),
        run_at=run_at,
        delay=delay,
    )
