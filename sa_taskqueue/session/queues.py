"""Which TaskQueue a session's `publish` and `first_time` belong to: `enqueue` knows it by its task, these do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sa_taskqueue.exceptions import InvalidSetting, UnknownQueue
from sa_taskqueue.queue import TaskQueue, known_queues

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

INFO = "task_queue"
"""The key of `Session.info`."""

_ATTRIBUTE = "_sa_taskqueue_queue"


def set_queue(cls: type[Session], queue: TaskQueue) -> None:
    """Have every session of the class use the queue."""
    if not isinstance(queue, TaskQueue):
        raise InvalidSetting(setting="queue", value=queue, allowed="a TaskQueue")
    setattr(cls, _ATTRIBUTE, queue)


def queue_of(session: Session, table: str, function: str) -> TaskQueue:
    """Return the session's own queue, or its class's, else the only one in the program that has the table.

    `table` is the keyword of TaskQueue; UnknownQueue names it, and the `function` that takes the queue as an argument.
    """
    given: Any = session.info.get(INFO) or getattr(type(session), _ATTRIBUTE, None)
    if given is not None:
        if not isinstance(given, TaskQueue):
            raise InvalidSetting(setting=f'info["{INFO}"]', value=given, allowed="a TaskQueue")
        return given
    candidates = [queue for queue in known_queues() if getattr(queue, table) is not None]
    if len(candidates) == 1:
        return candidates[0]
    found = ", ".join(sorted(getattr(queue, table).__name__ for queue in candidates))
    reason = f"there are several ({found})" if candidates else f"none was made with {table}=..."
    raise UnknownQueue(table=table, reason=reason, function=function)
