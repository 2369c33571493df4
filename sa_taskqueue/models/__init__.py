"""Mixins that make the user's own mapped classes the library's tables."""

from __future__ import annotations

from sa_taskqueue.models.crash_note import CrashNoteMixin
from sa_taskqueue.models.debezium import DebeziumOutboxMixin
from sa_taskqueue.models.inbox import InboxMixin
from sa_taskqueue.models.outbox import OutboxMixin
from sa_taskqueue.models.outbox_key import OutboxKeyMixin
from sa_taskqueue.models.queue import QueueDataclassMixin, QueueMixin
from sa_taskqueue.models.reservation import ReservationMixin

__all__ = [
    "CrashNoteMixin",
    "DebeziumOutboxMixin",
    "InboxMixin",
    "OutboxKeyMixin",
    "OutboxMixin",
    "QueueDataclassMixin",
    "QueueMixin",
    "ReservationMixin",
]
