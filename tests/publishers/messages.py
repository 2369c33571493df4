"""Messages for the tests of publishers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sa_taskqueue.ids import new_id
from sa_taskqueue.publishers import Message, Outcome, Sent

TIME = datetime(2026, 12, 1, 10, 30, 0, 123456, tzinfo=UTC)


def message(topic: str = "orders", *, number: int = 0, **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "id": new_id(),
        "topic": topic,
        "payload": json.dumps({"number": number}).encode(),
        "time": TIME,
        "source": "/shop",
        "type": "order.completed",
        "epoch": 3,
    }
    return Message(**{**fields, **changes})


def keyed(topic: str, keys: int, each: int) -> list[Message]:
    """Messages of several keys in turn: 0/1, 1/1, ..., 0/2, 1/2, ..."""
    return [message(topic, number=seq, key=f"key-{key}", seq=seq) for seq in range(1, each + 1) for key in range(keys)]


def all_sent(outcomes: Sequence[Outcome]) -> bool:
    """True, or an AssertionError that shows what else became of a message."""
    other = [outcome for outcome in outcomes if not isinstance(outcome, Sent)]
    assert not other, other[:3]
    return True
