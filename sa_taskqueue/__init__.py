"""Task queue in the user's own database, filled in the user's own unit of work."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sa_taskqueue.exceptions import TaskQueueError
from sa_taskqueue.states import Cancel, Complete, Fail, KeyStatus, MessageStatus, Outcome, Retry, Snooze, Status

if TYPE_CHECKING:
    from sa_taskqueue.context import BatchContext, TaskContext
    from sa_taskqueue.definitions import BoundTask, NewTask, TaskDefinition
    from sa_taskqueue.ids import new_id, timestamp_of
    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.models import (
        CrashNoteMixin,
        DebeziumOutboxMixin,
        InboxMixin,
        OutboxKeyMixin,
        OutboxMixin,
        QueueDataclassMixin,
        QueueMixin,
        ReservationMixin,
    )
    from sa_taskqueue.queue import TaskQueue
    from sa_taskqueue.relay import Relay
    from sa_taskqueue.reservation import AdvisoryLock, Lease, ReservationTable, RowLock
    from sa_taskqueue.retry import RetryPolicy, exponential, fixed, linear, never
    from sa_taskqueue.session import (
        AsyncTaskSession,
        TaskSession,
        TaskSessionMixin,
        duplicate_of,
        enqueue_from,
        enqueue_many,
        first_time,
        once,
        prepare_sqlite,
        publish,
        publish_from,
        publish_many,
        sqlite_engine,
    )
    from sa_taskqueue.session.enqueue import enqueue
    from sa_taskqueue.session.install import install
    from sa_taskqueue.worker import Worker

__all__ = [
    "AdvisoryLock",
    "AsyncTaskSession",
    "BatchContext",
    "BoundTask",
    "Cancel",
    "Complete",
    "CrashNoteMixin",
    "DebeziumOutboxMixin",
    "duplicate_of",
    "enqueue",
    "enqueue_from",
    "enqueue_many",
    "exponential",
    "Fail",
    "first_time",
    "fixed",
    "InboxMixin",
    "install",
    "KeyStatus",
    "Lease",
    "linear",
    "MessageStatus",
    "never",
    "new_id",
    "NewMessage",
    "NewTask",
    "once",
    "OutboxKeyMixin",
    "OutboxMixin",
    "Outcome",
    "prepare_sqlite",
    "publish",
    "publish_from",
    "publish_many",
    "QueueDataclassMixin",
    "QueueMixin",
    "Relay",
    "ReservationMixin",
    "ReservationTable",
    "Retry",
    "RetryPolicy",
    "RowLock",
    "Snooze",
    "sqlite_engine",
    "Status",
    "TaskContext",
    "TaskDefinition",
    "TaskQueue",
    "TaskQueueError",
    "TaskSession",
    "TaskSessionMixin",
    "timestamp_of",
    "Worker",
]

# Imported at the first use: a producer needs no worker, and AsyncTaskSession needs greenlet, which may be absent.
_MODULES = {
    "AdvisoryLock": "reservation",
    "AsyncTaskSession": "session",
    "BatchContext": "context",
    "BoundTask": "definitions",
    "CrashNoteMixin": "models",
    "DebeziumOutboxMixin": "models",
    "InboxMixin": "models",
    "Lease": "reservation",
    "NewMessage": "messages",
    "NewTask": "definitions",
    "OutboxKeyMixin": "models",
    "OutboxMixin": "models",
    "QueueDataclassMixin": "models",
    "QueueMixin": "models",
    "Relay": "relay",
    "ReservationMixin": "models",
    "ReservationTable": "reservation",
    "RetryPolicy": "retry",
    "RowLock": "reservation",
    "TaskContext": "context",
    "TaskDefinition": "definitions",
    "TaskQueue": "queue",
    "TaskSession": "session",
    "TaskSessionMixin": "session",
    "Worker": "worker",
    "duplicate_of": "session",
    "enqueue": "session",
    "enqueue_from": "session",
    "enqueue_many": "session",
    "exponential": "retry",
    "first_time": "session",
    "fixed": "retry",
    "install": "session",
    "linear": "retry",
    "never": "retry",
    "new_id": "ids",
    "once": "session",
    "prepare_sqlite": "session",
    "publish": "session",
    "publish_from": "session",
    "publish_many": "session",
    "sqlite_engine": "session",
    "timestamp_of": "ids",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
