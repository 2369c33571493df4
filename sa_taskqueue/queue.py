"""`TaskQueue`: the user's table together with the handlers registered for it. No I/O."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload
from uuid import UUID
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.exc import ArgumentError, InvalidRequestError

from sa_taskqueue import codec, messages, validation
from sa_taskqueue.changes import ANY, By, Change, Publication, Reaction, on_change
from sa_taskqueue.context import TaskContext
from sa_taskqueue.definitions import BoundTask, NewTask, Settings, TaskDefinition, TaskOptions
from sa_taskqueue.exceptions import DuplicateHandler, InvalidHandler, InvalidSetting, MissingTable, UnknownTask
from sa_taskqueue.messages import NewMessage
from sa_taskqueue.models.columns import COLUMNS
from sa_taskqueue.models.debezium import DEBEZIUM_COLUMNS
from sa_taskqueue.models.inbox import INBOX_COLUMNS
from sa_taskqueue.models.outbox import OUTBOX_COLUMNS
from sa_taskqueue.models.outbox_key import OUTBOX_KEY_COLUMNS
from sa_taskqueue.ranges import AnyRangeDecorator, BatchDefinition, RangeDecorator, RangeSettings
from sa_taskqueue.retry import RetryPolicy, exponential
from sa_taskqueue.states import TERMINAL, Status
from sa_taskqueue.triggers import Triggers

__all__ = ["DEFAULT_RETENTION", "BoundTask", "NewTask", "TaskDefinition", "TaskQueue"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

DEFAULT_INBOX_RETENTION = timedelta(days=14)

_with_messages: WeakSet[TaskQueue] = WeakSet()

DEFAULT_RETENTION: Mapping[Status, timedelta] = MappingProxyType(
    {
        Status.COMPLETED: timedelta(hours=24),
        Status.FAILED: timedelta(days=14),
        Status.CANCELLED: timedelta(days=14),
    }
)


class _Anything:
    """Stands for what only a first parameter of type Any or object takes: it would pass for a context otherwise."""


class TaskDecorator(Protocol):
    """What `TaskQueue.task` with options gives: it drops a first parameter annotated TaskContext."""

    @overload
    def __call__(self, function: Callable[Concatenate[_Anything, ...], R], /) -> TaskDefinition[..., R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> TaskDefinition[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskDefinition[P, R]: ...


class TaskQueue:
    """A table of tasks and the handlers that run them.

    ``max_body`` is in bytes of JSON. ``retention`` says how long rows of a terminal status are kept;
    ``timedelta(0)`` deletes them at once and ends the promise that an id may be sent again. ``notify`` sends NOTIFY
    in each enqueuing transaction on PostgreSQL: workers elsewhere start at once, commits become slower.
    ``crash_notes`` is a class with `CrashNoteMixin`, for reservation strategies that count crashes in it.
    ``reservations`` is a class mapped with `ReservationMixin`, for workers that use `ReservationTable`. ``outbox`` is
    one with `OutboxMixin` (or `DebeziumOutboxMixin`) for messages, ``outbox_keys`` one with `OutboxKeyMixin` for those
    with a key, ``inbox`` one with `InboxMixin` for receiving each message once, of which rows are kept for
    ``inbox_retention``: as long as a message may still be brought again. ``source`` names this service in the
    messages: a URI or a part of one.
    """

    def __init__(
        self,
        model: type[Any],
        *,
        default_queue: str = "default",
        max_body: int = codec.MAX_BODY,
        max_attempts: int = 10,
        retry: RetryPolicy | None = None,
        retention: Mapping[Status, timedelta] | None = None,
        known_tasks_only: bool = False,
        notify: bool = False,
        crash_notes: type[Any] | None = None,
        reservations: type[Any] | None = None,
        outbox: type[Any] | None = None,
        outbox_keys: type[Any] | None = None,
        inbox: type[Any] | None = None,
        inbox_retention: timedelta = DEFAULT_INBOX_RETENTION,
        source: str = "sa_taskqueue",
    ) -> None:
        if not validation.whole_number(max_body) or max_body < 2:
            raise InvalidSetting(setting="max_body", value=max_body, allowed="a positive number of bytes")
        if sa.inspect(model, raiseerr=False) is not None:
            _tasks_table(model)
        self.model = model
        self.crash_notes = crash_notes
        self.default_queue = validation.check_queue(default_queue)
        self.max_body = max_body
        self.max_attempts = validation.check_attempts(max_attempts)
        self.retry: RetryPolicy = validation.check_retry(retry) or exponential()
        self.retention = MappingProxyType({**DEFAULT_RETENTION, **_checked_retention(retention or {})})
        self.known_tasks_only = known_tasks_only
        self.notify = notify
        self.reservations = reservations
        self.outbox = outbox
        self.outbox_keys = outbox_keys
        self.inbox = inbox
        self.inbox_retention = _checked_inbox_retention(inbox_retention)
        self.source = validation.check_source(source)
        if outbox is not None or inbox is not None:
            _with_messages.add(self)
        self.trigger_reactions: list[Reaction | Publication] = []
        self._handlers: dict[str, TaskDefinition[..., Any]] = {}
        self.handlers: Mapping[str, TaskDefinition[..., Any]] = MappingProxyType(self._handlers)

    @functools.cached_property
    def table(self) -> sa.Table:
        """The table the model is mapped to, known as soon as it is mapped: perhaps later than the queue is made."""
        return _tasks_table(self.model)

    @functools.cached_property
    def row_class(self) -> type[Any]:
        """The model, of which it is known that its table is one of tasks."""
        _tasks_table(self.model)
        return self.model

    @functools.cached_property
    def crash_notes_table(self) -> sa.Table | None:
        """The table of ``crash_notes``, where the queue has one."""
        return None if self.crash_notes is None else _table_of(self.crash_notes, "crash_notes")

    @functools.cached_property
    def reservation_table(self) -> sa.Table | None:
        """The table of reservations, where there is one."""
        return None if self.reservations is None else _table_of(self.reservations, "reservations")

    def message(
        self,
        topic: str,
        payload: object,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        type: str | None = None,  # noqa: A002 - it is the column's name
        run_after: datetime | timedelta | None = None,
        ordered: bool = True,
        id: UUID | None = None,  # noqa: A002 - it is the column's name
    ) -> NewMessage:
        """Check a message and make it ready to be stored; nothing is stored. See `publish` for what it takes."""
        if self.for_debezium:
            ordered = False  # the log has the order of the commits
            if run_after is not None:
                raise InvalidSetting(setting="run_after", value=run_after, allowed="None: Debezium takes what it sees")
        elif key is not None and ordered:
            self.outbox_keys_table  # noqa: B018 - MissingTable, here and not at the commit
        return messages.build(
            topic,
            payload,
            key=key,
            headers=headers,
            type=type,
            run_after=run_after,
            ordered=ordered,
            id=id,
            limit=self.max_body,
        )

    @functools.cached_property
    def outbox_table(self) -> sa.Table:
        """The table of messages; MissingTable where there is none."""
        return _side_table(self.outbox, "outbox", _OUTBOX, OUTBOX_COLUMNS, DEBEZIUM_COLUMNS)

    @functools.cached_property
    def outbox_keys_table(self) -> sa.Table:
        """The table of the messages' keys; MissingTable where there is none."""
        return _side_table(self.outbox_keys, "outbox_keys", _KEYS, OUTBOX_KEY_COLUMNS)

    @functools.cached_property
    def inbox_table(self) -> sa.Table:
        """The table of what was received; MissingTable where there is none."""
        return _side_table(self.inbox, "inbox", _INBOX, INBOX_COLUMNS)

    @functools.cached_property
    def tables(self) -> tuple[sa.Table, ...]:
        """All tables of the library that the queue has, that of the tasks first."""
        others = {
            "outbox": self.outbox,
            "outbox_keys": self.outbox_keys,
            "inbox": self.inbox,
            "crash_notes": self.crash_notes,
            "reservations": self.reservations,
        }
        return (self.table, *(_table_of(model, name) for name, model in others.items() if model is not None))

    @functools.cached_property
    def for_debezium(self) -> bool:
        """Whether Debezium, and no relay, reads the outbox."""
        return "aggregatetype" in self.outbox_table.c

    @overload
    def task(self, function: Callable[Concatenate[_Anything, ...], R], /) -> TaskDefinition[..., R]: ...
    @overload
    def task(self, function: Callable[Concatenate[TaskContext, P], R], /) -> TaskDefinition[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> TaskDefinition[P, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        **settings: Unpack[TaskOptions],
    ) -> TaskDecorator: ...
    @overload
    def task(
        self,
        /,
        *,
        batch: int,
        item: Callable[P, T],
        max_wait: float | timedelta = 0.0,
        name: str | None = None,
        **settings: Unpack[TaskOptions],
    ) -> RangeDecorator[P, T]: ...
    @overload
    def task(
        self,
        /,
        *,
        batch: int,
        max_wait: float | timedelta = 0.0,
        name: str | None = None,
        **settings: Unpack[TaskOptions],
    ) -> AnyRangeDecorator: ...
    def task(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        batch: int | None = None,
        max_wait: float | timedelta = 0.0,
        item: Callable[..., Any] | None = None,
        **settings: Any,
    ) -> Any:
        """Register a handler, sync or async, under its function's name or ``name``.

        ``lease`` and ``timeout`` are seconds or timedeltas, None for the worker's own. ``max_attempts``
        wins over the retry policy's. With ``store_result`` the returned value is kept in the row.

        ``batch`` makes a range handler of up to so many tasks (1 to 1,000), which takes a list of items; ``max_wait``
        is how many seconds a batch that is not full waits for more, ``item`` the type of the items for type checkers.
        """
        known = Settings(**settings)
        if batch is None and (max_wait or item is not None):
            setting, value = ("max_wait", max_wait) if max_wait else ("item", item)
            raise InvalidSetting(setting=setting, value=value, allowed="given together with batch=")
        range_ = None if batch is None else RangeSettings(batch, max_wait, item)
        if function is not None:
            return self._register(function, name, known, range_)
        return lambda function: self._register(function, name, known, range_)

    def _register(
        self, function: Callable[..., Any], name: str | None, settings: Settings, range_: RangeSettings | None
    ) -> TaskDefinition[..., Any]:
        if name is None:
            name = str(getattr(function, "__name__", ""))
            if name == "<lambda>":
                raise InvalidHandler(name=name, reason="a lambda has no name; give one with @queue.task(name=...)")
        if isinstance(function, TaskDefinition):
            raise InvalidHandler(name=name, reason="it is registered already")
        known = self._handlers.get(name)
        if known is not None:
            raise DuplicateHandler(name=name, first=_where(known.function), second=_where(function))
        definition: TaskDefinition[..., Any]
        if range_ is None:
            definition = TaskDefinition(self, name, function, settings)
        else:
            definition = BatchDefinition(self, name, function, settings, range_)
        self._handlers[name] = definition
        return definition

    def named(self, name: str, *, queue: str | None = None) -> TaskDefinition[..., Any]:
        """The task with this name, which another program may handle; its arguments go by keyword.

        Raises UnknownTask for a name without a handler here if the queue was made with ``known_tasks_only``.
        """
        known = self._handlers.get(name)
        if known is not None:
            return known
        if self.known_tasks_only:
            near = ", ".join(difflib.get_close_matches(str(name), self._handlers)) or "none"
            raise UnknownTask(name=name, near=near)
        return TaskDefinition(self, name, _handled_elsewhere, Settings(queue=queue))

    def on_change(
        self,
        attribute: Any,
        /,
        *,
        to: Any = ANY,
        from_: Any = ANY,
        when: Any = None,
        by: By = "session",
        name: str | None = None,
    ) -> Change:
        """Enqueue when a mapped attribute changes: ``on_change(Order.status, to="done").enqueue(task, id=Order.id)``.

        ``to`` and ``from_`` are values, or sets of them. A new row counts as a change from None. ``when`` is a function
        of the changed object. Seen are the flushes of sessions with `enqueue`; what an UPDATE statement changes is not.

        With ``by="trigger"`` a trigger of the database does it instead, for all writers (`triggers`); ``when`` is a
        condition over columns then, and ``name`` the trigger's.
        """
        return on_change(self, attribute, to=to, from_=from_, when=when, by=by, name=name)

    def triggers(self) -> Triggers:
        """The triggers of all that was registered with ``by="trigger"``, to be created by you."""
        return Triggers(self.trigger_reactions)

    def prepare(self) -> None:
        """Work out all annotations now instead of at the first use; InvalidHandler names a wrong one."""
        for definition in self._handlers.values():
            definition.arguments.prepare()


def known_queues() -> list[TaskQueue]:
    """The queues of this process that have an outbox or an inbox."""
    return list(_with_messages)


def _tasks_table(model: type[Any]) -> sa.Table:
    allowed = "a mapped class with QueueMixin: class Task(QueueMixin, Base)"
    try:
        table = _table_of(model, "model")
    except InvalidSetting:
        raise InvalidSetting(setting="model", value=model, allowed=allowed) from None
    if not COLUMNS.keys() <= set(table.c.keys()):
        raise InvalidSetting(setting="model", value=model, allowed=allowed)
    return table


def _table_of(model: type[Any], setting: str) -> sa.Table:
    try:
        table = orm.class_mapper(model, configure=False).local_table
    except (InvalidRequestError, ArgumentError):
        table = None
    if not isinstance(table, sa.Table):
        raise InvalidSetting(setting=setting, value=model, allowed="a class mapped to a table")
    return table


_OUTBOX = "Publishing", "OutboxMixin"
_KEYS = "An ordered message (a key, without ordered=False)", "OutboxKeyMixin"
_INBOX = "Receiving each message once", "InboxMixin"


def _side_table(model: type[Any] | None, argument: str, use: tuple[str, str], *columns: Mapping[str, Any]) -> sa.Table:
    """The table of a model that has all columns of one of the lists."""
    feature, mixin = use
    if model is None:
        raise MissingTable(feature=feature, mixin=mixin, argument=argument)
    table = _table_of(model, argument)
    if not any(known.keys() <= set(table.c.keys()) for known in columns):
        raise InvalidSetting(setting=argument, value=model, allowed=f"a class mapped with {mixin}")
    return table


def _handled_elsewhere(**arguments: Any) -> None:
    raise NotImplementedError("this task is handled by another program")


def _where(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"


def _checked_inbox_retention(kept: timedelta) -> timedelta:
    if not isinstance(kept, timedelta) or kept <= timedelta(0):
        raise InvalidSetting(setting="inbox_retention", value=kept, allowed="a timedelta of more than nothing")
    return kept


def _checked_retention(retention: Mapping[Status, timedelta]) -> dict[Status, timedelta]:
    for status, kept in retention.items():
        if status not in TERMINAL or not isinstance(kept, timedelta) or kept < timedelta(0):
            raise InvalidSetting(
                setting="retention", value=dict(retention), allowed="timedeltas for COMPLETED, FAILED and CANCELLED"
            )
    return {Status(status): kept for status, kept in retention.items()}
