"""Range handlers: `@queue.task(batch=N)` makes a handler that takes up to N tasks of its name in one transaction.

::

    @dataclass(frozen=True)
    class OrderRef:
        order_id: int

    @queue.task(batch=100, item=OrderRef)
    def index_orders(context: BatchContext, items: list[OrderRef]) -> None: ...

    session.enqueue(index_orders, order_id=1)  # the fields of ONE item, which is one task and one row

The type of the items is read from the annotation ``list[OrderRef]``. ``item=OrderRef`` says it to type checkers too,
which cannot get the parameters of a constructor out of a type argument: with it they check each `enqueue`.
"""

from __future__ import annotations

import collections.abc
import contextlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, overload

from sa_taskqueue import validation
from sa_taskqueue.codec import decode_json, encode
from sa_taskqueue.context import BatchContext
from sa_taskqueue.converters import UnsupportedAnnotation, converter_for
from sa_taskqueue.definitions import Settings, TaskDefinition
from sa_taskqueue.exceptions import InvalidArguments, InvalidHandler, InvalidSetting, UndecodableTask
from sa_taskqueue.scalars import Converter, Mismatch
from sa_taskqueue.signatures import Arguments, Converters, decoding_reason, is_context, plain_function, signature_of

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskQueue

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

LARGEST = 1_000
"""Tasks of one batch at most: as many as a claim may take."""

_LISTS = (list, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)


@dataclass(frozen=True, slots=True)
class RangeSettings:
    """What `TaskQueue.task` was told about batches."""

    batch: int
    max_wait: float | timedelta = 0.0
    item: Callable[..., Any] | None = None


class RangeDecorator(Protocol[P, T]):
    """What `TaskQueue.task` with ``batch`` and ``item`` gives: a task is enqueued by the fields of one item."""

    @overload
    def __call__(self, function: Callable[[BatchContext, list[T]], R], /) -> TaskDefinition[P, R]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], R], /) -> TaskDefinition[P, R]: ...


class AnyRangeDecorator(Protocol):
    """What `TaskQueue.task` with ``batch`` alone gives: the fields are checked when a task is enqueued."""

    @overload
    def __call__(self, function: Callable[[BatchContext, list[T]], R], /) -> TaskDefinition[..., R]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], R], /) -> TaskDefinition[..., R]: ...


class BatchDefinition(TaskDefinition[P, R]):
    """A registered range handler; calling it with one item's fields runs the function with a list of that item."""

    def __init__(
        self, task_queue: TaskQueue, name: str, function: Callable[..., R], settings: Settings, range_: RangeSettings
    ) -> None:
        self._item = range_.item
        super().__init__(task_queue, name, function, settings)
        self.batch = _checked_size(range_.batch)
        self.max_wait = _checked_wait(range_.max_wait)

    def decode_item(self, body: str) -> Any:
        """The item stored in a task's body; UndecodableTask if it is none."""
        return cast("ItemArguments", self.arguments).decode_item(body)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.takes_context:
            reason = "called directly it needs a BatchContext; call .function(context, items)"
            raise InvalidArguments(name=self.name, reason=reason)
        arguments = cast("ItemArguments", self.arguments)
        arguments.bind(args, kwargs)
        return self.function([arguments.item(*args, **kwargs)])

    def _read_signature(self, name: str, function: Callable[..., Any]) -> Arguments:
        return ItemArguments(name, function, self._item)


class ItemArguments(Arguments):
    """How one item's fields are stored and read back."""

    def __init__(self, name: str, function: Callable[..., Any], item: Any) -> None:
        parameters = list(signature_of(name, function).parameters.values())
        takes_context = bool(parameters) and is_context(parameters[0], function, BatchContext)
        parameters = parameters[1:] if takes_context else parameters
        _check_parameters(name, parameters)
        self.item: Callable[..., Any] = _item_type(name, item or _annotated(name, function, parameters[0]))
        self._of_library = not is_dataclass(self.item)
        self._convert: Converter | None = None
        super().__init__(name, self.item)
        self.takes_context = takes_context

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The object to store; a model of msgspec or pydantic is made of it, to have its checks made now."""
        bound = super().bind(args, kwargs)
        if self._of_library and self._convert is not None:
            try:
                self._convert(decode_json(encode(bound, limit=sys.maxsize)))
            except Mismatch as mismatch:
                raise InvalidArguments(
                    name=self._name, reason=decoding_reason(mismatch.__cause__ or mismatch)
                ) from None
        return bound

    def decode_item(self, body: str) -> Any:
        """The item; UndecodableTask if the body does not fit its type."""
        self.prepare()
        try:
            values = decode_json(body)
            if type(values) is not dict or self._convert is None:
                raise Mismatch("an object keyed by the names of the item's fields")
            return self._convert(values)
        except Exception as error:
            raise UndecodableTask(name=self._name, reason=decoding_reason(error)) from error

    def _work_out(self) -> Converters:
        try:
            self._convert = converter_for(self.item)
        except UnsupportedAnnotation as error:
            raise InvalidHandler(name=self._name, reason=f"its items: {error}") from None
        return super()._work_out()

    def _hints(self) -> Iterator[Any]:
        """Those of the class; a model of a library knows itself what its fields can be made of."""
        hints = {} if self._of_library else typing.get_type_hints(self.item, include_extras=True)
        for name in self._signature.parameters:
            yield Any if self._of_library else hints[name]


def _check_parameters(name: str, parameters: list[inspect.Parameter]) -> None:
    needed = [each for each in parameters if each.default is each.empty or each is parameters[0]]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(needed) != 1 or needed[0].kind not in by_position:
        reason = "with batch=... it takes a BatchContext, if it wants one, and then one list of items"
        raise InvalidHandler(name=name, reason=reason)


def _annotated(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """What the list of items is annotated to hold."""
    annotation: Any = parameter.annotation
    holder = types.SimpleNamespace(__annotations__={"hint": Any if annotation is parameter.empty else annotation})
    namespace = getattr(plain_function(function), "__globals__", {})
    with contextlib.suppress(NameError):
        annotation = typing.get_type_hints(holder, namespace, {})["hint"]
    if isinstance(annotation, str | typing.ForwardRef):
        reason = (
            f"the type of its items cannot be found by {annotation!r}: define it before the handler and at module "
            "level, or name it in @queue.task(batch=..., item=...)"
        )
        raise InvalidHandler(name=name, reason=reason)
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) not in _LISTS or len(arguments) != 1:
        reason = f"with batch=... its parameter {parameter.name} is annotated as a list of items: list[OrderRef]"
        raise InvalidHandler(name=name, reason=reason)
    return arguments[0]


def _item_type(name: str, item: Any) -> type[Any]:
    msgspec, pydantic = sys.modules.get("msgspec"), sys.modules.get("pydantic")
    if isinstance(item, type) and (
        is_dataclass(item)
        or (msgspec is not None and issubclass(item, msgspec.Struct))
        or (pydantic is not None and issubclass(item, pydantic.BaseModel))
    ):
        return item
    reason = f"its items are of {item!r}, but must be of a dataclass, a msgspec.Struct or a pydantic.BaseModel"
    raise InvalidHandler(name=name, reason=reason)


def _checked_size(batch: int) -> int:
    if not validation.whole_number(batch) or not 1 <= batch <= LARGEST:
        raise InvalidSetting(setting="batch", value=batch, allowed=f"a whole number from 1 to {LARGEST:,}")
    return batch


def _checked_wait(max_wait: float | timedelta) -> float:
    return 0.0 if max_wait in (0, timedelta(0)) else validation.check_seconds("max_wait", max_wait)
