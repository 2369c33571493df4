"""Errors of a task that cannot be stored; nothing was sent to the database."""

from __future__ import annotations

from sa_taskqueue.exceptions.base import TaskQueueError


class InvalidTask(TaskQueueError, ValueError):
    """The task cannot be stored."""

    code = "invalid_task"


class InvalidName(InvalidTask):
    """The {field} name "{value}" is refused: use 1 to {limit} of the characters A-Z a-z 0-9 _ . : -"""

    code = "invalid_name"
    field: str
    value: object
    limit: int


class InvalidPriority(InvalidTask):
    """priority is {value}, but must be a whole number from -100 to 100, the smaller the sooner."""

    code = "invalid_priority"
    value: object


class InvalidDelay(InvalidTask):
    """A delay of {value} is refused: it must be from 0 seconds to {limit} days."""

    code = "invalid_delay"
    value: object
    limit: int


class InvalidDatetime(InvalidTask):
    """{field} is {value}, but its year must be from {first} to {last}, which every database can store."""

    code = "invalid_datetime"
    field: str
    value: object
    first: int
    last: int


class NaiveDatetime(InvalidTask):
    """{field} is a datetime without a time zone, which producer and worker may read differently. Give it one, such
    as datetime.now(timezone.utc).
    """

    code = "naive_datetime"
    field: str


class InvalidAttempts(InvalidTask):
    """max_attempts is {value}, but must be a whole number from 1 to {limit}."""

    code = "invalid_attempts"
    value: object
    limit: int


class InvalidArguments(InvalidTask, TypeError):
    """The arguments do not fit the task {name}: {reason}."""

    code = "invalid_arguments"
    name: str
    reason: str


class UnknownTask(InvalidTask):
    """No handler is named {name}; near it: {near}. Register it with @queue.task before enqueueing it."""

    code = "unknown_task"
    name: str
    near: str


class InvalidUniqueKey(InvalidTask):
    """The unique key is refused: {reason}."""

    code = "invalid_unique_key"
    reason: str


class InvalidHeaders(InvalidTask):
    """The headers are refused: {reason}. Give a flat mapping of strings to strings, at most {limit} bytes of JSON."""

    code = "invalid_headers"
    reason: str
    limit: int


class InvalidMessage(InvalidTask):
    """The {field} of the message is refused: {reason}."""

    code = "invalid_message"
    field: str
    reason: str


class BodyError(InvalidTask):
    """The arguments cannot be stored as JSON."""

    code = "body"


class BodyNotSerializable(BodyError):
    """The value at {path} cannot be stored as JSON: {reason}."""

    code = "body_not_serializable"
    path: str
    reason: str


class BodyTooLarge(BodyError):
    """As JSON the {what} would take {size} bytes, but the limit is {limit}. Store the data elsewhere and pass a
    reference to it; for arguments and payloads, TaskQueue(max_body=...) raises the limit.
    """

    code = "body_too_large"
    what: str
    size: int
    limit: int


class BodyTooDeep(BodyError):
    """The arguments are nested deeper than {limit} levels at {path}. Store the data elsewhere and pass a reference."""

    code = "body_too_deep"
    path: str
    limit: int


class BodyInvalid(BodyError):
    """The text at {path} holds {what}, which not every database can store. Remove it or pass bytes."""

    code = "body_invalid"
    path: str
    what: str
