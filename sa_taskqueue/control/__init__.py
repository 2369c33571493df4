"""What operators do: look at tasks, run them again, cancel and delete them. Shared by the commands and by programs."""

from __future__ import annotations

from sa_taskqueue.control.control import Check, Control
from sa_taskqueue.store.control import Choice, Retried, TaskRow
from sa_taskqueue.store.stats import QueueStatistics

__all__ = ["Check", "Choice", "Control", "QueueStatistics", "Retried", "TaskRow"]
