"""Errors of a task that a worker holds."""

from __future__ import annotations

import uuid

from sa_taskqueue.exceptions.base import TaskQueueError


class LeaseLost(TaskQueueError):
    """The lease on the task {id} (epoch {epoch}) is lost: another worker may hold it, so its end is not recorded. Make
    the lease longer if handlers freeze for that long.
    """

    code = "lease_lost"
    id: uuid.UUID
    epoch: int


class MessageGap(TaskQueueError):
    """The message {id} has the number {seq} of the key "{key}", but {last} was applied last: those between are still to
    come. Do not acknowledge it, so that the broker brings it again; with gaps="accept" it is applied.
    """

    code = "message_gap"
    id: str
    key: str
    seq: int
    last: int | None


class UndecodableTask(TaskQueueError):
    """The body does not fit the handler of {name}: {reason}. Correct the body or the handler, then retry the task."""

    code = "undecodable"
    name: str
    reason: str


class UnknownItem(TaskQueueError, LookupError):
    """{item} is none of the items of this batch of {name}. Give one of the objects the handler was called with, or the
    id of its task.
    """

    code = "unknown_item"
    name: str
    item: object


class InvalidOutcomes(TaskQueueError):
    """What the range handler of {name} returned is refused: {reason}. Return None, one outcome for all, a list with one
    entry for each item, or a mapping from items or task ids to outcomes.
    """

    code = "invalid_outcomes"
    name: str
    reason: str
