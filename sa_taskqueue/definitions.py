"""Registered tasks, their options, and the checked task that is ready to be stored."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, ParamSpec, TypedDict, TypeVar
from uuid import UUID

from sa_taskqueue import codec, validation
from sa_taskqueue.exceptions import InvalidArguments, InvalidHandler, InvalidSetting
from sa_taskqueue.ids import new_id
from sa_taskqueue.models.keys import unique_hash
from sa_taskqueue.retry import RetryPolicy
from sa_taskqueue.signatures import Arguments

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskQueue

P = ParamSpec("P")
R = TypeVar("R")

UniqueUntil = Literal["start", "end"]
OnDuplicate = Literal["ignore", "raise", "replace"]


class NewTask(NamedTuple):
    """A task ready to be stored, everything in it checked. A tuple: a frozen dataclass takes six times as long to make.

    At most one of ``run_at`` (UTC) and ``delay`` is set; with neither the task is due at once.
    ``body`` and ``headers`` are JSON objects as text.
    """

    id: UUID
    name: str
    queue: str
    priority: int
    run_at: datetime | None
    delay: timedelta | None
    body: str
    headers: str | None
    max_attempts: int
    unique_key: str | None
    unique_hash: bytes | None
    unique_until: UniqueUntil | None
    on_duplicate: OnDuplicate | None


@dataclass(frozen=True, slots=True)
class Options:
    """How one task is stored; made by `TaskDefinition.using`."""

    queue: str
    priority: int
    max_attempts: int
    run_at: datetime | None = None
    delay: timedelta | None = None
    headers: str | None = None
    unique_key: str | None = None
    unique_hash: bytes | None = None
    unique_until: UniqueUntil | None = None
    on_duplicate: OnDuplicate | None = None
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What `TaskQueue.task` was told about a handler; None leaves the choice to the worker or the queue."""

    queue: str | None = None
    priority: int = 0
    retry: RetryPolicy | None = None
    lease: float | timedelta | None = None
    timeout: float | timedelta | None = None
    max_attempts: int | None = None
    store_result: bool = False


class TaskOptions(TypedDict, total=False):
    """The fields of `Settings`, as the keywords of `TaskQueue.task`."""

    queue: str | None
    priority: int
    retry: RetryPolicy | None
    lease: float | timedelta | None
    timeout: float | timedelta | None
    max_attempts: int | None
    store_result: bool


class TaskDefinition(Generic[P, R]):
    """A registered handler; calling it runs the function here and now, without a queue.

    ``lease`` and ``timeout`` are seconds, or None for the worker's own. ``batch`` is how many tasks a range handler
    takes at most, None for a handler of one; ``max_wait`` how many seconds its tasks wait for others.
    """

    batch: int | None = None
    max_wait: float = 0.0

    def __init__(self, task_queue: TaskQueue, name: str, function: Callable[..., R], settings: Settings) -> None:
        self.task_queue = task_queue
        self.function = _checked_function(name, function)
        self.name = validation.check_task(name)
        self.is_async = _is_async(function)
        self.arguments = self._read_signature(name, function)
        self.arguments.prepare_early()
        self.retry: RetryPolicy = validation.check_retry(settings.retry) or task_queue.retry
        self.lease = _seconds("lease", settings.lease)
        self.timeout = _seconds("timeout", settings.timeout)
        self.store_result = settings.store_result
        self.options = Options(
            queue=task_queue.default_queue if settings.queue is None else validation.check_queue(settings.queue),
            priority=validation.check_priority(settings.priority),
            max_attempts=self._attempts(settings),
        )
        functools.update_wrapper(self, function, updated=())

    def _read_signature(self, name: str, function: Callable[..., Any]) -> Arguments:
        return Arguments(name, function)

    def _attempts(self, settings: Settings) -> int:
        """The decorator wins over its retry policy, and that over the queue."""
        limit = settings.max_attempts
        if limit is None and settings.retry is not None:
            limit = settings.retry.max_attempts
        if limit is None:
            limit = self.task_queue.max_attempts
        return validation.check_attempts(limit)

    @property
    def queue(self) -> str:
        """The queue its tasks go to unless `.using` names another."""
        return self.options.queue

    @property
    def takes_context(self) -> bool:
        """Whether the handler's first parameter is a TaskContext."""
        return self.arguments.takes_context

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.takes_context:
            reason = "called directly it needs a TaskContext; call .function(context, ...)"
            raise InvalidArguments(name=self.name, reason=reason)
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def new(self, /, *args: P.args, **kwargs: P.kwargs) -> NewTask:
        """Check the arguments and make a task of them; nothing is stored."""
        return build(self, self.options, args, kwargs)

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_after: datetime | timedelta | None = None,
        unique_key: str | None = None,
        unique_until: UniqueUntil = "end",
        on_duplicate: OnDuplicate = "ignore",
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
        id: UUID | None = None,  # noqa: A002 - it is the column's name
    ) -> BoundTask[P, R]:
        """The same task with other options.

        ``priority`` is -100 to 100, the smaller the sooner (the opposite of Django's tasks). ``run_after``
        is a datetime with a time zone, or a timedelta on the database's clock. Of the tasks with one
        ``unique_key`` only one waits (``unique_until="start"``) or only one exists unfinished (``"end"``).
        ``id`` is for sending a task again that may have arrived already.
        """
        given = self.options
        run_at, delay = validation.check_run_after(run_after)
        if id is not None and not isinstance(id, UUID):
            raise InvalidSetting(setting="id", value=id, allowed="a uuid.UUID")
        options = Options(
            queue=given.queue if queue is None else validation.check_queue(queue),
            priority=given.priority if priority is None else validation.check_priority(priority),
            max_attempts=(given.max_attempts if max_attempts is None else validation.check_attempts(max_attempts)),
            run_at=run_at,
            delay=delay,
            headers=None if headers is None else validation.check_headers(headers),
            id=id,
        )
        if unique_key is not None:
            options = _with_key(options, self.name, unique_key, unique_until, on_duplicate)
        return BoundTask(self, options)

    def decode(self, body: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments for the handler, without the context; UndecodableTask if they do not fit."""
        return self.arguments.decode(body)


class BoundTask(Generic[P, R]):
    """A task together with the options it will be stored with."""

    __slots__ = ("definition", "options")

    def __init__(self, definition: TaskDefinition[P, R], options: Options) -> None:
        self.definition = definition
        self.options = options

    @property
    def task_queue(self) -> TaskQueue:
        """The task queue it belongs to."""
        return self.definition.task_queue

    @property
    def name(self) -> str:
        """The task's registered name."""
        return self.definition.name

    def new(self, /, *args: P.args, **kwargs: P.kwargs) -> NewTask:
        """Check the arguments and make a task of them; nothing is stored."""
        return build(self.definition, self.options, args, kwargs)


def build(
    definition: TaskDefinition[..., Any], options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> NewTask:
    """The task as it will be stored; raises InvalidTask for what cannot be."""
    body = codec.encode(definition.arguments.bind(args, kwargs), limit=definition.task_queue.max_body)
    return NewTask(  # by position, in the order of the fields: by name it takes twice as long
        options.id or new_id(),
        definition.name,
        options.queue,
        options.priority,
        options.run_at,
        options.delay,
        body,
        options.headers,
        options.max_attempts,
        options.unique_key,
        options.unique_hash,
        options.unique_until,
        options.on_duplicate,
    )


def _with_key(options: Options, name: str, key: str, until: UniqueUntil, on_duplicate: OnDuplicate) -> Options:
    validation.check_choice("unique_until", until, ("start", "end"))
    validation.check_choice("on_duplicate", on_duplicate, ("ignore", "raise", "replace"))
    key = validation.check_unique_key(key)
    return replace(
        options,
        unique_key=key,
        unique_hash=unique_hash(name, key),
        unique_until=until,
        on_duplicate=on_duplicate,
    )


def _seconds(setting: str, value: float | timedelta | None) -> float | None:
    return None if value is None else validation.check_seconds(setting, value)


def _checked_function(name: str, function: Callable[..., R]) -> Callable[..., R]:
    if not callable(function) or isinstance(function, type):
        raise InvalidHandler(name=name, reason="it is not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidHandler(name=name, reason="it is a generator, which would never run")
    return function


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
