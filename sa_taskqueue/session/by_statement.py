"""`enqueue_from`: tasks for all rows that a statement changes or finds, made by the database itself."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from sqlalchemy import ColumnElement, Select, bindparam, inspect
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind, driver_error
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.columns import ColumnArguments
from sa_taskqueue.definitions import BoundTask, TaskDefinition
from sa_taskqueue.exceptions import InvalidArguments, InvalidSetting
from sa_taskqueue.session.enqueue import refuse_ended
from sa_taskqueue.session.hooks import hook, refuse_unsafe_once
from sa_taskqueue.session.outermost import arm_flushed
from sa_taskqueue.session.pending import boundary, tasks_of, unit_of_work
from sa_taskqueue.session.statements import Support, check_statement, not_null_by
from sa_taskqueue.session.targets import AnySession, AsyncTarget, SyncTarget, async_session, is_async, sync_session
from sa_taskqueue.states import Status
from sa_taskqueue.store.by_statement import NewRows, Outcome, insert_for_changed, insert_for_found, table_of
from sa_taskqueue.store.errors import raise_named
from sa_taskqueue.store.hooked import as_hooked

if TYPE_CHECKING:
    from typing import TypeVarTuple

    from sqlalchemy import Delete, Insert, Row, Table, Update
    from sqlalchemy.orm import Session
    from sqlalchemy.sql.dml import ReturningDelete, ReturningInsert, ReturningUpdate

    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.adapters.derived import Derivation
    from sa_taskqueue.queue import TaskQueue

    Ts = TypeVarTuple("Ts")
    Returning = ReturningUpdate[*Ts] | ReturningDelete[*Ts] | ReturningInsert[*Ts]
    Counted = Update | Delete | Insert | Select[*tuple[Any, ...]]
    AnyTask = TaskDefinition[..., Any] | BoundTask[..., Any]


@overload
def enqueue_from(  # pyright: ignore[reportOverlappingOverload]  # with RETURNING it is of both kinds
    session: SyncTarget, statement: Returning[*Ts], task: AnyTask, /, **arguments: Any
) -> Sequence[Row[*Ts]]: ...


@overload
def enqueue_from(session: SyncTarget, statement: Counted, task: AnyTask, /, **arguments: Any) -> int: ...


@overload
def enqueue_from(  # pyright: ignore[reportOverlappingOverload]  # with RETURNING it is of both kinds
    session: AsyncTarget, statement: Returning[*Ts], task: AnyTask, /, **arguments: Any
) -> Awaitable[Sequence[Row[*Ts]]]: ...


@overload
def enqueue_from(session: AsyncTarget, statement: Counted, task: AnyTask, /, **arguments: Any) -> Awaitable[int]: ...


def enqueue_from(session: AnySession, statement: Any, task: AnyTask, /, **arguments: Any) -> Any:
    """Execute update(), delete() or insert(), and store a task for each row of it, or for each that a select() finds.

    The arguments are columns, expressions or plain values, checked against the handler before any SQL: InvalidArguments
    names a parameter that is missing, unknown or of another type. Columns of an UPDATE have their new values, those of
    a DELETE their old ones. The database makes the tasks itself: no row comes to Python, however many there are, but
    what the statement's own ``returning(...)`` asks for. Returns these rows, else the number of rows.

    It writes at once, after a flush, so it is awaited on an AsyncSession. Loaded objects of the changed table are
    expired. Options go by ``task.using(...)``, but for ``unique_key`` and ``id``, which are refused.
    """
    checked_task(task)
    if is_async(session):
        return async_session(cast("AsyncTarget", session)).run_sync(write_from, statement, task, arguments)
    return write_from(sync_session(session), statement, task, arguments)


def checked_task(task: object) -> None:
    """Refuse what is no task, and options that make no sense for many rows."""
    if not isinstance(task, (TaskDefinition, BoundTask)):
        allowed = "a function with @queue.task, named but not called"
        raise InvalidSetting(setting="task", value=task, allowed=allowed)
    if task.options.unique_hash is not None:
        reason = "unique_key cannot be given for rows made by SQL: not every database can hash it"
        raise InvalidArguments(name=task.name, reason=f"{reason}. Read the rows and use enqueue_many")
    if task.options.id is not None:
        raise InvalidArguments(name=task.name, reason="each row gets an id of its own, so id=... cannot be given")


def write_from(session: Session, statement: Any, task: AnyTask, arguments: dict[str, Any]) -> Any:
    """Check, flush, execute, and arm the wake-ups."""
    check_statement(statement)
    definition = task.definition if isinstance(task, BoundTask) else task
    queue, select_only = task.task_queue, isinstance(statement, Select)
    given = ColumnArguments(task.name, arguments, not_null=not_null_by(statement), certain=not select_only)
    given.check(definition.arguments)
    refuse_ended(session, task.name)
    refuse_other_database(session, queue.model, statement)
    hook(session)
    refuse_unsafe_once(session, unit_of_work(session), tasks_of(queue))
    # Of the connection, because only there the server's version is known.
    dialect = session.connection(bind_arguments={"mapper": queue.model}).dialect
    support = Support("enqueue_from", dialect)
    derivation = support.derivation()
    support.check(session, statement)
    body = given.json_object(definition.arguments, derivation, dialect, queue.max_body)
    rows = NewRows(queue.table, task_values(queue, task, derivation, support.adapter), {"body": body})
    session.flush()
    outcome = insert_rows(session, queue.model, statement, rows, task.name)
    if outcome.count:
        wake(session, queue, task.options.queue)
    return outcome.count if outcome.rows is None else outcome.rows


def task_values(
    queue: TaskQueue, task: AnyTask, derivation: Derivation, adapter: Adapter
) -> dict[str, ColumnElement[Any]]:
    """All columns of a new task but its body; each row has the same, except for the id."""
    options = task.options
    values: dict[str, Any] = {
        "name": task.name,
        "queue": options.queue,
        "priority": options.priority,
        "status": Status.NEW,
        "max_attempts": options.max_attempts,
    }
    if options.headers is not None:
        values["headers"] = options.headers
    if options.run_at is not None:
        values |= {"status": Status.SCHEDULED, "scheduled_at": options.run_at}
    if options.delay is not None:
        values["status"] = Status.SCHEDULED
    made: dict[str, ColumnElement[Any]] = {"id": derivation.new_id()}
    made |= {key: bindparam(None, value, type_=queue.table.c[key].type) for key, value in values.items()}
    if options.delay is not None:
        made["scheduled_at"] = adapter.after(options.delay.total_seconds())
    return made


def insert_rows(session: Session, model: type[Any], statement: Any, rows: NewRows, name: str) -> Outcome:
    """Execute in the session's transaction, as it is after a flush, and expire what is loaded of the changed table."""
    statement = as_hooked(session, statement)
    connection = session.connection(bind_arguments={"mapper": model})
    try:
        if isinstance(statement, Select):
            return insert_for_found(connection, rows, statement)
        outcome = insert_for_changed(connection, rows, statement)
    except DBAPIError as error:
        _raise(error, rows.table, connection.engine, name)
        raise
    if outcome.count and statement.get_execution_options().get("synchronize_session") is not False:
        expire(session, table_of(statement))
    return outcome


def refuse_other_database(session: Session, model: type[Any], statement: Any) -> None:
    """Refuse a statement about another database than the queue's."""
    if session.get_bind(clause=statement).engine is not session.get_bind(model).engine:
        allowed = "about the database of the new rows' table; read the rows and use enqueue_many or publish_many"
        raise InvalidSetting(setting="statement", value=str(statement), allowed=allowed)


def expire(session: Session, table: Table) -> None:
    """Expire the objects in the session that have columns in the table: their attributes are read anew when used."""
    for each in list(session.identity_map.values()):
        state = inspect(each)
        if table in state.mapper.tables:
            session.expire(each)


def wake(session: Session, queue: TaskQueue, name: str) -> None:
    """Arm the wake-up of a queue that has got tasks."""
    current, work = boundary(session), unit_of_work(session)
    if current is not None:
        work.pending(current).unflushed.add((tasks_of(queue), name))
        arm_flushed(session, work)


def _raise(error: DBAPIError, table: Table, engine: Any, name: str) -> None:
    """Raise the named error if it is about the table of the new rows; the statement is about the user's, too."""
    message = str(driver_error(error))
    null = adapter_for(engine.dialect).classify(error) is ErrorKind.NULL
    if null and any(column in message for column in ("body", "payload")):
        reason = "a row gave NULL for a parameter that may not be None; nothing was stored, and nothing changed"
        raise InvalidArguments(name=name, reason=reason) from error
    if table.name in message:
        raise_named(error, table, engine)
