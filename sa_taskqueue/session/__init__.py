"""The unit-of-work side: tasks are rows of the caller's own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sa_taskqueue.session.bulk import enqueue_many
from sa_taskqueue.session.by_statement import enqueue_from
from sa_taskqueue.session.consuming import once
from sa_taskqueue.session.enqueue import enqueue
from sa_taskqueue.session.inbox import first_time
from sa_taskqueue.session.install import install
from sa_taskqueue.session.keyed import duplicate_of
from sa_taskqueue.session.publish_by_statement import publish_from
from sa_taskqueue.session.publishing import publish, publish_many
from sa_taskqueue.session.sessions import TaskSession, TaskSessionMixin
from sa_taskqueue.session.sqlite import prepare_sqlite, sqlite_engine

if TYPE_CHECKING:
    from sa_taskqueue.session.async_sessions import AsyncTaskSession

__all__ = [
    "AsyncTaskSession",
    "TaskSession",
    "TaskSessionMixin",
    "duplicate_of",
    "enqueue",
    "enqueue_from",
    "enqueue_many",
    "first_time",
    "install",
    "once",
    "prepare_sqlite",
    "publish",
    "publish_from",
    "publish_many",
    "sqlite_engine",
]


def __getattr__(name: str) -> Any:
    """Import what needs greenlet only when it is asked for."""
    if name == "AsyncTaskSession":
        from sa_taskqueue.session.async_sessions import AsyncTaskSession

        return AsyncTaskSession
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
