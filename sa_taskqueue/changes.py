"""Change events: tasks that are enqueued because a mapped attribute changes, registered with `TaskQueue.on_change`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from sqlalchemy import Column, ColumnElement, Table
from sqlalchemy.orm import ColumnProperty, QueryableAttribute

from sa_taskqueue.columns import ColumnArguments, expression_of
from sa_taskqueue.definitions import BoundTask, TaskDefinition
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.message_columns import MessageColumns

if TYPE_CHECKING:
    from sa_taskqueue.messages import NewMessage
    from sa_taskqueue.queue import TaskQueue

By = Literal["session", "trigger"]


class _Any:
    """Stands for every value, as None is one."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Any = _Any()
"""Any value; what `to` and `from_` are when they are not given."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """One task for one change."""

    change: Change
    task: TaskDefinition[..., Any] | BoundTask[..., Any]
    arguments: Mapping[str, Any]
    make: Callable[[Any], Mapping[str, Any]] | None = None

    def arguments_of(self, instance: Any) -> dict[str, Any]:
        """The handler's arguments, from the changed object as it is after the flush."""
        made = {key: _value_of(value, instance) for key, value in self.arguments.items()}
        return made if self.make is None else {**self.make(instance), **made}


@dataclass(frozen=True, slots=True)
class Publication:
    """One message for one change."""

    change: Change
    topic: str
    payload: Any
    key: Any
    options: Mapping[str, Any]

    @property
    def queue(self) -> TaskQueue:
        """The queue whose outbox takes the message."""
        return self.change.queue

    def message_of(self, instance: Any) -> NewMessage:
        """The message, from the changed object as it is after the flush."""
        if isinstance(self.payload, Mapping):
            payload: Any = {key: _value_of(value, instance) for key, value in self.payload.items()}
        else:
            payload = _value_of(self.payload, instance)
        key = _value_of(self.key, instance)
        return self.queue.message(self.topic, payload, key=None if key is None else str(key), **self.options)

    def columns(self) -> MessageColumns:
        """The message as a trigger makes it."""
        key = expression_of(self.key)
        plain = self.queue.message(
            self.topic,
            None if isinstance(self.payload, Mapping) else self.payload,
            key="x" if key is not None else self.key,
            **self.options,
        )
        return MessageColumns(plain, self.payload, key)


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a mapped attribute; its methods say what is done about it. Made by `TaskQueue.on_change`."""

    queue: TaskQueue
    attribute: QueryableAttribute[Any]
    to: Any = ANY
    from_: Any = ANY
    when: Any = None
    by: By = "session"
    name: str | None = None
    reactions: list[Reaction | Publication] = field(default_factory=list, compare=False)

    def enqueue(
        self,
        task: TaskDefinition[..., Any] | BoundTask[..., Any],
        make: Callable[[Any], Mapping[str, Any]] | None = None,
        /,
        **arguments: Any,
    ) -> Change:
        """Enqueue the task at each such change, in the transaction of the change.

        The arguments are attributes of the changed object's class, plain values, or functions of the object; ``make``
        gives all of them, or the rest, at once. For triggers they are columns, expressions over them, or plain values.
        """
        given: object = task
        if not isinstance(given, (TaskDefinition, BoundTask)):
            raise InvalidSetting(
                setting="task", value=given, allowed="a function with @queue.task, named but not called"
            )
        definition = task.definition if isinstance(task, BoundTask) else task
        if self.by == "trigger":
            self._check_for_trigger(definition, task, make, arguments)
        elif make is None:
            definition.arguments.check_names(arguments)
        for key, value in arguments.items():
            self._check(key, value, definition)
        return self._with(Reaction(self, task, arguments, make))

    def publish(
        self,
        topic: str,
        payload: Any,
        *,
        key: Any = None,
        headers: Mapping[str, str] | None = None,
        type: str | None = None,  # noqa: A002 - it is the column's name
        ordered: bool = True,
    ) -> Change:
        """Publish a message at each such change, in the transaction of the change.

        ``payload`` is a mapping of what `enqueue` takes as arguments, or a function of the object; ``key`` is an
        attribute, a text, or a function. Numbers and UUIDs become text. A message that a trigger stores is numbered by
        the relay.
        """
        if self.queue.outbox is None:
            self.queue.outbox_table  # noqa: B018 - MissingTable, here and not at the first change
        options: dict[str, Any] = {"headers": headers, "type": type, "ordered": ordered}
        publication = Publication(self, topic, payload, key, options)
        if self.by == "trigger":
            refuse_functions([*_values_of(payload), key])
            publication.columns().check()
        else:
            self.queue.message(topic, None, key=None if key is None else "x", **options)
            for each in (*_values_of(payload), key):
                self._check_attribute("payload or key", each)
        return self._with(publication)

    def _with(self, reaction: Reaction | Publication) -> Change:
        self.reactions.append(reaction)
        if self.by == "session":
            _reactions.setdefault(self.cls, []).append(reaction)
        else:
            self.queue.trigger_reactions.append(reaction)
        return self

    @property
    def cls(self) -> type[Any]:
        """The mapped class of the attribute."""
        cls: Any = self.attribute.class_
        return cls  # type: ignore[no-any-return]

    @property
    def key(self) -> str:
        """The name of the attribute."""
        return self.attribute.key

    @property
    def column(self) -> Column[Any]:
        """The column that the attribute is mapped to."""
        column: Column[Any] = self.attribute.property.columns[0]
        return column

    @property
    def table(self) -> Table:
        """The table of the column."""
        table: Table = self.column.table
        return table

    def matches(self, old: Any, new: Any) -> bool:
        """Whether the values before and after are a change of this kind."""
        return old != new and fits(self.to, new) and fits(self.from_, old)

    def _check(self, key: str, value: Any, definition: TaskDefinition[..., Any]) -> None:
        if self.by == "trigger":
            return
        if expression_of(value) is None and not callable(value):
            definition.arguments.check_value(key, value)
        self._check_attribute(key, value)

    def _check_attribute(self, key: str, value: Any) -> None:
        is_own = isinstance(value, QueryableAttribute) and value.class_ in self.cls.__mro__
        if expression_of(value) is not None and not is_own:
            allowed = f"an attribute of {self.cls.__name__}, a plain value, or a function of the changed object"
            raise InvalidSetting(setting=key, value=str(value), allowed=allowed)

    def _check_for_trigger(
        self, definition: TaskDefinition[..., Any], task: Any, make: object, arguments: Mapping[str, Any]
    ) -> None:
        refuse_functions([make, *arguments.values()])
        options = task.options
        if options.unique_hash is not None or options.id is not None or options.run_at is not None:
            allowed = "without unique_key, id and a datetime for run_after: a trigger makes many rows, at any time"
            raise InvalidSetting(setting="using(...)", value=task.name, allowed=allowed)
        ColumnArguments(task.name, arguments, not_null=frozenset(), certain=True).check(definition.arguments)


def on_change(queue: TaskQueue, attribute: Any, **options: Any) -> Change:
    """Check what `TaskQueue.on_change` was given."""
    if not isinstance(attribute, QueryableAttribute) or not isinstance(attribute.property, ColumnProperty):
        raise InvalidSetting(
            setting="attribute", value=str(attribute), allowed="an attribute mapped to a column, such as Order.status"
        )
    by, when = options["by"], options["when"]
    if by not in ("session", "trigger"):
        raise InvalidSetting(setting="by", value=by, allowed='"session" or "trigger"')
    is_expression = isinstance(when, ColumnElement)
    if when is not None and (not is_expression if by == "trigger" else not callable(when) or is_expression):
        allowed = (
            "a condition over columns, such as Order.total > 100" if by == "trigger" else "a function of the object"
        )
        raise InvalidSetting(setting="when", value=str(when), allowed=allowed)
    return Change(queue, attribute, **options)


def refuse_functions(values: Iterable[Any]) -> None:
    """Refuse what only Python could run."""
    if any(callable(value) and expression_of(value) is None for value in values):
        allowed = "columns and values, as a trigger runs no Python"
        raise InvalidSetting(setting="arguments", value="a function", allowed=allowed)


def reacts() -> bool:
    """Whether anything is registered at all: most programs have nothing, and each of their flushes asks."""
    return bool(_reactions)


def reactions_of(cls: type[Any]) -> list[Reaction | Publication]:
    """What is to be done in the session when attributes of the class change; its parents' included."""
    if not _reactions:
        return []
    return [reaction for each in cls.__mro__ for reaction in _reactions.get(each, ())]


def fits(wanted: Any, value: Any) -> bool:
    """Whether the value is the wanted one, or one of a set of them."""
    if wanted is ANY:
        return True
    return value in wanted if isinstance(wanted, (set, frozenset)) else bool(value == wanted)


def _value_of(value: Any, instance: Any) -> Any:
    if isinstance(value, QueryableAttribute):
        return getattr(instance, value.key)
    return value(instance) if callable(value) else value


def _values_of(payload: Any) -> list[Any]:
    return list(payload.values()) if isinstance(payload, Mapping) else [payload]


_reactions: WeakKeyDictionary[type[Any], list[Reaction | Publication]] = WeakKeyDictionary()
