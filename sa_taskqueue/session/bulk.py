"""`enqueue_many`: many tasks by batched INSERT or COPY, in the session's transaction and savepoint."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast, overload

from sa_taskqueue.definitions import NewTask
from sa_taskqueue.exceptions import InvalidArguments
from sa_taskqueue.session.enqueue import refuse_ended
from sa_taskqueue.session.hooks import hook, refuse_unsafe_once
from sa_taskqueue.session.outermost import arm_flushed
from sa_taskqueue.session.pending import boundary, tasks_of, unit_of_work
from sa_taskqueue.session.targets import AnySession, AsyncTarget, SyncTarget, async_session, is_async, sync_session
from sa_taskqueue.store.errors import named_errors
from sa_taskqueue.store.inserts import insert_many

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from sa_taskqueue.definitions import BoundTask, TaskDefinition

Arguments = Mapping[str, Any]


@overload
def enqueue_many(
    session: SyncTarget,
    task: TaskDefinition[Any, Any] | BoundTask[Any, Any],
    arguments: Iterable[Arguments | NewTask],
    /,
) -> list[uuid.UUID]: ...


@overload
def enqueue_many(
    session: AsyncTarget,
    task: TaskDefinition[Any, Any] | BoundTask[Any, Any],
    arguments: Iterable[Arguments | NewTask],
    /,
) -> Awaitable[list[uuid.UUID]]: ...


def enqueue_many(
    session: AnySession,
    task: TaskDefinition[Any, Any] | BoundTask[Any, Any],
    arguments: Iterable[Arguments | NewTask],
    /,
) -> list[uuid.UUID] | Awaitable[list[uuid.UUID]]:
    """Store one task for each mapping of keyword arguments, and return their ids in the same order.

    All arguments are checked before the first statement. An item may also be a `NewTask` (from `task.new(...)`, of the
    same TaskQueue). It writes to the database at once, after a flush, so it is awaited on an AsyncSession; no rows
    enter the session. For a unique key that is taken the id is that of the task that holds it.
    """
    tasks = [item if isinstance(item, NewTask) else _new(task, item) for item in arguments]
    if is_async(session):
        return async_session(cast("AsyncTarget", session)).run_sync(write_many, task, tasks)
    return write_many(sync_session(session), task, tasks)


def _new(task: TaskDefinition[Any, Any] | BoundTask[Any, Any], arguments: Arguments) -> NewTask:
    given: object = arguments  # whatever the annotation says
    if not isinstance(given, Mapping):
        reason = f"an item is of the type {type(given).__qualname__}, but must be a mapping or a NewTask"
        raise InvalidArguments(name=task.name, reason=f"{reason}: [{{'parameter': value}}, ...]")
    return task.new(**arguments)


def write_many(
    session: Session, task: TaskDefinition[Any, Any] | BoundTask[Any, Any], tasks: list[NewTask]
) -> list[uuid.UUID]:
    """Write checked tasks through the session's connection, taken anew: a kept one may miss the savepoint."""
    if not tasks:
        return []
    refuse_ended(session, tasks[0].name)
    hook(session)
    queue = task.task_queue
    session.flush()
    work = unit_of_work(session)
    refuse_unsafe_once(session, work, tasks_of(queue))
    connection = session.connection(bind_arguments={"mapper": queue.model})
    with named_errors(queue.table, connection.engine):
        ids = insert_many(connection, queue.table, tasks)
    current = boundary(session)
    if current is not None:
        work.pending(current).unflushed.update((tasks_of(queue), new.queue) for new in tasks)
        arm_flushed(session, work)
    return ids
