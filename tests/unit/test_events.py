"""CloudEvents: what this library writes, its own reader and CloudEvents' SDK read alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from sa_taskqueue import events
from sa_taskqueue.events import CONTENT_TYPE, STRUCTURED, attributes, binary, read, structured

SEVEN = UUID(int=7)


@dataclass(frozen=True)
class Message:
    id: UUID = SEVEN
    topic: str = "orders.completed"
    type: str | None = None
    key: str | None = None
    seq: int | None = None
    epoch: int = 3
    payload: bytes = b'{"a":1}'
    headers: Mapping[str, str] = field(default_factory=dict)
    time: datetime = datetime(2026, 12, 1, 3, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))
    source: str = "/shop"


KEYED = Message(type="OrderCompleted", key="köln 100%", seq=12, headers={"tenant": "é", "traceparent": "00-1-2-01"})


def test_the_attributes_of_a_plain_message() -> None:
    assert attributes(Message()) == {
        "specversion": "1.0",
        "id": str(SEVEN),
        "source": "/shop",
        "type": "orders.completed",
        "time": "2026-12-01T02:00:00.000005Z",
        "datacontenttype": "application/json",
        "epoch": "3",
    }


def test_key_number_and_trace_are_attributes_too() -> None:
    found = attributes(KEYED)
    assert found["type"] == "OrderCompleted"
    assert found["subject"] == found["partitionkey"] == "köln 100%"
    assert found["traceparent"] == "00-1-2-01"
    assert "tenant" not in found
    assert attributes(Message(key="k", seq=9))["sequence"] < attributes(Message(key="k", seq=10))["sequence"]


def test_binary_puts_them_beside_the_messages_own_headers() -> None:
    headers = binary(KEYED, prefix="ce_")
    assert headers["tenant"] == "é"
    assert headers[CONTENT_TYPE] == "application/json"
    assert headers["ce_partitionkey"] == "köln 100%"
    assert "ce_datacontenttype" not in headers


def test_a_header_cannot_take_the_place_of_an_attribute() -> None:
    assert binary(Message(headers={"ce-id": "forged"}))["ce-id"] == str(SEVEN)


def test_for_http_all_is_printable_ascii() -> None:
    headers = binary(KEYED, ascii_only=True)
    assert headers["ce-partitionkey"] == "k%C3%B6ln%20100%25"
    assert headers["ce-source"] == "/shop"
    assert all(value.isascii() and value.isprintable() for value in headers.values())


READERS: list[tuple[str, Any]] = [
    ("kafka", lambda message: read({n: v.encode() for n, v in binary(message, prefix="ce_").items()}, message.payload)),
    ("http", lambda message: read(binary(message, ascii_only=True), message.payload, percent_encoded=True)),
    ("rabbitmq", lambda message: read({}, structured(message), content_type=f"{STRUCTURED}; charset=utf-8")),
    ("structured", lambda message: read({"Content-Type": STRUCTURED}, structured(message).decode())),
]


@pytest.mark.parametrize("reading", [each for _, each in READERS], ids=[name for name, _ in READERS])
@pytest.mark.parametrize("message", [Message(), KEYED], ids=["plain", "keyed"])
def test_what_is_written_is_read_again(reading: Any, message: Message) -> None:
    found = reading(message)
    assert (found.id, found.source, found.key, found.seq) == (str(message.id), "/shop", message.key, message.seq)
    assert found.type == (message.type or message.topic)
    assert found.data == {"a": 1}
    assert found.attributes["epoch"] == "3"


@pytest.mark.parametrize("payload", [b"null", b"[1]", b'"t"', b"42"])
def test_the_payload_is_any_json(payload: bytes) -> None:
    assert json.loads(structured(Message(payload=payload)))["data"] == json.loads(payload)
    assert read(binary(Message()), payload).data == json.loads(payload)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"{}"),
        (None, b""),
        ({"ce-id": "1", "ce-source": "/s"}, b"{}"),
        ({"ce-id": "", "ce-source": "/s", "ce-type": "t"}, b"{}"),
        ({"ce-id": "1", "ce-source": "/s", "ce-type": "t"}, b"{"),
        ({"ce-id": "1", "ce-source": "/s", "ce-type": "t", "ce-sequence": "x"}, b"{}"),
        ({CONTENT_TYPE: STRUCTURED}, b"[]"),
        ({CONTENT_TYPE: STRUCTURED}, b"nonsense"),
    ],
)
def test_what_is_no_event_is_a_value_error(headers: Any, body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        read(headers, body)


def test_the_sdk_of_cloudevents_reads_both_forms() -> None:
    pytest.importorskip("cloudevents")
    from cloudevents.core.bindings.http import HTTPMessage, from_http_event

    http = events.binary(KEYED, ascii_only=True)
    for message in (
        HTTPMessage(http, KEYED.payload),
        HTTPMessage({CONTENT_TYPE: STRUCTURED}, structured(KEYED)),
    ):
        event = from_http_event(message)
        assert event.get_id() == str(KEYED.id)
        assert event.get_type() == "OrderCompleted"
        assert event.get_subject() == "köln 100%"
        assert event.get_extension("sequence") == "12".zfill(19)
        assert event.get_data() == {"a": 1}
