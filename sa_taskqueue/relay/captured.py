"""The refusal of an outbox that no relay may touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sa_taskqueue.exceptions import InvalidSetting

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskQueue


def refuse_captured(queue: TaskQueue) -> None:
    """InvalidSetting for an outbox that Debezium reads from the database's log; MissingTable if there is none."""
    if queue.for_debezium:
        allowed = "a class with OutboxMixin: what Debezium reads is sent by Debezium"
        raise InvalidSetting(setting="outbox", value=queue.outbox, allowed=allowed)
