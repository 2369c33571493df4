"""From a validated task to an instance of the user's own model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import inspect
from sqlalchemy.orm.attributes import set_attribute

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.states import MessageStatus, Status
from sa_taskqueue.store.messages import message_values

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from sa_taskqueue.definitions import NewTask
    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.queue import TaskQueue


def new_row(session: Session, queue: TaskQueue, task: NewTask) -> Any:
    """Return the row for `session.add`. What the database fills in itself (its clock) is left out."""
    values: dict[str, Any] = {
        "id": task.id,
        "name": task.name,
        "queue": task.queue,
        "priority": task.priority,
        "body": task.body,
        "max_attempts": task.max_attempts,
    }
    if task.headers is not None:
        values["headers"] = task.headers
    if task.unique_hash is not None:
        values |= _keyed_values(task)
    due = _due(session, queue.model, task)
    if due is not None:
        values["status"] = Status.SCHEDULED
    row = _made(queue.row_class, values)
    if due is not None:
        set_attribute(row, "scheduled_at", due)  # no argument of a dataclass's constructor
    return row


def new_message_row(session: Session, queue: TaskQueue, message: NewMessage) -> Any:
    """Return the row of a message for `session.add`."""
    model = cast("type[Any]", queue.outbox)
    values = message_values(message, for_debezium=queue.for_debezium)
    due = _due(session, model, message)
    return _made(model, values if due is None else {**values, "status": MessageStatus.SCHEDULED, "scheduled_at": due})


def _made(model: type[Any], values: dict[str, Any]) -> Any:
    row = model(**values)
    if "id" not in inspect(row).dict:  # SQLModel's constructor passes over what is not a field of its own
        for key, value in values.items():
            set_attribute(row, key, value)
    return row


def _keyed_values(task: NewTask) -> dict[str, Any]:
    """What a row with a unique key needs besides: it may replace another one, of which no value must remain."""
    return {
        "unique_key": task.unique_key,
        "unique_hash": task.unique_hash,
        "unique_until": task.unique_until,
        "status": Status.NEW,
        "headers": task.headers,
    }


def _due(session: Session, model: type[Any], new: NewTask | NewMessage) -> Any:
    """Return the moment given, or the database's clock plus the delay as an expression; None: due now."""
    if new.delay is None:
        return new.run_at
    adapter = adapter_for(session.get_bind(model).dialect)
    return adapter.after(new.delay.total_seconds())
