"""Where messages go: one publisher for each kind of broker, found by its URL."""

from __future__ import annotations

from sa_taskqueue.publishers.base import Failed, HeldBack, Message, Outcome, Publisher, Refused, Sent
from sa_taskqueue.publishers.callable import CallablePublisher
from sa_taskqueue.publishers.registry import publisher_for

__all__ = [
    "CallablePublisher",
    "Failed",
    "HeldBack",
    "Message",
    "Outcome",
    "Publisher",
    "publisher_for",
    "Refused",
    "Sent",
]
