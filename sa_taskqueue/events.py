"""CloudEvents 1.0: what a message of the outbox says about itself, and reading it again at the other end. Pure.

*Binary* puts the attributes into headers and leaves the payload as it is; *structured* puts both into one JSON object.
Beside the attributes of the specification there are its extensions `partitionkey` (the key), `sequence` (the number
among the messages of the key, padded so that it sorts as text) and `traceparent` and `tracestate` (from the headers),
and one of the library's own, `epoch`: the fencing token of the relay that sent it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote, unquote
from uuid import UUID

JSON = "application/json"
STRUCTURED = "application/cloudevents+json"

CONTENT_TYPE = "content-type"

_TRACE = ("traceparent", "tracestate")
_PREFIX = re.compile(r"(?:ce[-_]|cloudevents[:_])(?=.)", re.IGNORECASE)
_DIGITS = 19
"""Of the greatest BIGINT."""

_SAFE_IN_HTTP = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_AS_IT_IS = re.compile(r"[!#$&-~]*")
"""Nothing to encode, as in nearly all values: finding that out takes a tenth of the time of `quote`."""


class Message(Protocol):
    """What is asked of a message."""

    @property
    def id(self) -> UUID: ...
    @property
    def topic(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def seq(self) -> int | None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def time(self) -> datetime: ...
    @property
    def source(self) -> str: ...


def attributes(message: Message) -> dict[str, str]:
    """The attributes of a message, as text. The topic stands in for a type, the key is the subject."""
    found = {
        "specversion": "1.0",
        "id": str(message.id),
        "source": message.source,
        "type": message.type or message.topic,
        "time": message.time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "datacontenttype": JSON,
        "epoch": str(message.epoch),
    }
    if message.key is not None:
        found |= {"subject": message.key, "partitionkey": message.key}
    if message.seq is not None:
        found["sequence"] = str(message.seq).zfill(_DIGITS)
    return found | {name: message.headers[name] for name in _TRACE if name in message.headers}


def binary(message: Message, *, prefix: str = "ce-", ascii_only: bool = False) -> dict[str, str]:
    """The headers of a message in binary form: its own and, under the prefix, the attributes.

    The content type has a header of its own. ``prefix`` is ``ce_`` in Kafka, ``ce-`` in HTTP, NATS and RabbitMQ. With
    ``ascii_only`` (HTTP, NATS) what a header cannot hold is percent-encoded, as the HTTP binding says.
    """
    known = attributes(message)
    content_type = known.pop("datacontenttype")
    encode = percent if ascii_only else str
    return {
        **{name: encode(value) for name, value in message.headers.items()},
        CONTENT_TYPE: content_type,
        **{f"{prefix}{name}": encode(value) for name, value in known.items()},
    }


def structured(message: Message) -> bytes:
    """The message as one JSON object in UTF-8, of the content type `STRUCTURED`; the payload is its ``data``."""
    head = json.dumps(attributes(message), ensure_ascii=False, separators=(",", ":")).encode()
    return b'%b,"data":%b}' % (head[:-1], message.payload)


@dataclass(frozen=True, slots=True)
class Received:
    """A message as a consumer got it."""

    id: str
    source: str
    type: str
    key: str | None = None
    seq: int | None = None
    """Its number among the messages of its key; None if it has no order."""
    data: Any = field(default=None, repr=False)
    attributes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All attributes, those of other extensions included."""


def read(
    headers: Mapping[str, Any] | None,
    body: bytes | str,
    *,
    content_type: str | None = None,
    percent_encoded: bool = False,
) -> Received:
    """Read a message in either form, whatever the broker; ValueError if it is none.

    ``headers`` are those of the broker, texts or bytes; ``content_type`` where it keeps that apart (RabbitMQ).
    ``percent_encoded`` is for HTTP and NATS, whose headers are.
    """
    decode = unquote if percent_encoded else str
    given = {_text(name).lower(): _text(value) for name, value in (headers or {}).items() if value is not None}
    kind = (content_type or given.get(CONTENT_TYPE) or "").partition(";")[0].strip().lower()
    if kind == STRUCTURED:
        whole = json.loads(body)
        if not isinstance(whole, dict):
            raise ValueError("a structured CloudEvent is a JSON object")
        data = whole.pop("data", None)
        return _received({name: str(value) for name, value in whole.items()}, data)
    found = {_PREFIX.sub("", name): decode(value) for name, value in given.items() if _PREFIX.match(name)}
    return _received(found, json.loads(body) if body else None)


def _received(found: dict[str, str], data: Any) -> Received:
    missing = [name for name in ("id", "source", "type") if not found.get(name)]
    if missing:
        raise ValueError(f"no CloudEvent: {' and '.join(missing)} missing")
    sequence = found.get("sequence")
    return Received(
        id=found["id"],
        source=found["source"],
        type=found["type"],
        key=found.get("partitionkey"),
        seq=int(sequence) if sequence else None,
        data=data,
        attributes=found,
    )


def percent(value: str) -> str:
    return value if _AS_IT_IS.fullmatch(value) else quote(value, safe=_SAFE_IN_HTTP)


def _text(value: Any) -> str:
    return bytes(value).decode() if isinstance(value, (bytes, bytearray, memoryview)) else str(value)
