"""What operators do: look at tasks and messages, run or send them again, delete. For commands and programs."""

from __future__ import annotations

from sa_taskqueue.control.control import Check, Control
from sa_taskqueue.control.outbox import OutboxControl
from sa_taskqueue.store.control import Choice, Retried, TaskRow
from sa_taskqueue.store.outbox_control import BlockedKey, OutboxStatistics
from sa_taskqueue.store.stats import QueueStatistics

__all__ = [
    "BlockedKey",
    "Check",
    "Choice",
    "Control",
    "OutboxControl",
    "OutboxStatistics",
    "QueueStatistics",
    "Retried",
    "TaskRow",
]
