"""Arguments to a JSON object keyed by parameter name, and back.

Everything that needs inspection is worked out once per handler; a call only walks dictionaries.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sa_taskqueue.codec import decode_json, encode
from sa_taskqueue.context import HandlerContext, TaskContext
from sa_taskqueue.converters import (
    UnsupportedAnnotation,
    converter_for,
    fitting_types,
    list_of,
    listed_values,
    optional,
)
from sa_taskqueue.exceptions import InvalidArguments, InvalidHandler, UndecodableTask
from sa_taskqueue.scalars import Converter, Mismatch, as_is

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_EXACT = frozenset({str, int, float, bool})

# For each stored name: the type that needs no conversion, if there is one, and the conversion.
Converters = Mapping[str, tuple[type | None, Converter]]


class Arguments:
    """How one handler's arguments are stored and read back."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function
        parameters = list(signature_of(name, function).parameters.values())
        self.takes_context = bool(parameters) and is_context(parameters[0], function, TaskContext)
        parameters = parameters[1:] if self.takes_context else parameters
        self._signature = inspect.Signature(parameters)
        self._positional = tuple(each.name for each in parameters if each.kind in _POSITIONAL)
        self._keywords = frozenset(each.name for each in parameters if each.kind in _BY_KEYWORD)
        self._required = frozenset(
            each.name for each in parameters if each.kind in _POSITIONAL + _BY_KEYWORD and each.default is each.empty
        )
        self._rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
        self._others = next((each.name for each in parameters if each.kind is each.VAR_KEYWORD), None)
        # Only these must be passed by position; all others go by keyword, which is one step less.
        self._by_position = tuple(
            name for name in self._positional if self._rest is not None or name not in self._keywords
        )
        self._converters: Converters | None = None
        self._expected: dict[str, frozenset[type]] = {}
        self._annotations: dict[str, Any] = {}

    def prepare_early(self) -> None:
        """Find a wrong annotation where the handler is defined; one that names what comes later waits for `prepare`."""
        with contextlib.suppress(NameError):
            self._work_out()

    def prepare(self) -> None:
        """Work out the annotations once; InvalidHandler if one cannot be resolved or made from JSON."""
        self._ready()

    def _ready(self) -> Converters:
        if self._converters is not None:
            return self._converters
        try:
            return self._work_out()
        except NameError as error:
            reason = f"its annotations cannot be resolved at run time ({error}): import what they name at module level"
            raise InvalidHandler(name=self._name, reason=reason) from None

    def _work_out(self) -> Converters:
        parameters, hints = self._signature.parameters.values(), tuple(self._hints())
        converters = {each.name: self._converter(each, hint) for each, hint in zip(parameters, hints, strict=True)}
        self._expected = dict(self._fitting(hints, converters))
        self._annotations = dict(zip(converters, hints, strict=True))
        self._converters = converters
        return converters

    def _hints(self) -> Iterator[Any]:
        """The annotations of the stored parameters only: others may be importable for type checkers alone."""
        namespace = getattr(plain_function(self._function), "__globals__", {})
        for each in self._signature.parameters.values():
            holder = types.SimpleNamespace(
                __annotations__={"hint": Any if each.annotation is each.empty else each.annotation}
            )
            yield typing.get_type_hints(holder, namespace, {}, include_extras=True)["hint"]

    def _fitting(self, hints: Iterable[Any], converters: Converters) -> Iterator[tuple[str, frozenset[type]]]:
        """For each parameter that takes not just anything: the types of arguments that need no second look."""
        for each, hint in zip(self._signature.parameters.values(), hints, strict=True):
            _, convert = converters[each.name]
            if convert is not as_is and each.kind in _POSITIONAL + _BY_KEYWORD:
                yield each.name, fitting_types(hint) | ({type(None)} if _accepts_none(convert) else set())

    def _converter(self, parameter: inspect.Parameter, hint: Any) -> tuple[type | None, Converter]:
        try:
            convert = converter_for(hint)
        except UnsupportedAnnotation as error:
            raise InvalidHandler(name=self._name, reason=f"its parameter {parameter.name}: {error}") from None
        if parameter.kind is parameter.VAR_POSITIONAL:
            return None, list_of(convert)
        if parameter.default is None and convert is not as_is:
            return None, optional(convert)
        return (hint if isinstance(hint, type) and hint in _EXACT else None), convert

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The object to store; a default that was not overridden is left to the worker."""
        self._ready()
        bound = dict(zip(self._positional, args, strict=False))
        if len(args) > len(self._positional):
            if self._rest is None:
                raise self._misfit(args, kwargs)
            bound[self._rest] = list(args[len(self._positional) :])
        for name, value in kwargs.items():
            if name in bound or (name not in self._keywords and self._others is None):
                raise self._misfit(args, kwargs)
            bound[name] = value
        if not self._required <= bound.keys():
            raise self._misfit(args, kwargs)
        for name, types_ in self._expected.items():
            if name in bound and type(bound[name]) not in types_:
                self._look_closer(name, bound[name])
        return bound

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse names that the handler does not take, and fewer than it needs."""
        self._ready()
        given = dict.fromkeys(names)
        if not self._required <= given.keys() or (self._others is None and not given.keys() <= self._keywords):
            raise self._misfit((), given)

    def accepts(self, name: str, stored: Any) -> bool:
        """Tell whether the worker can make the argument of this JSON value."""
        converters = self._ready()
        _, convert = converters.get(name) or self._other(name, converters)
        try:
            convert(stored)
        except Mismatch:
            return False
        return True

    def listed_values(self, name: str) -> tuple[Any, ...]:
        """The values of the parameter's enums and Literals, as they are stored."""
        self._ready()
        return listed_values(self._annotations.get(name, Any))

    def check_value(self, name: str, value: Any) -> None:
        """Refuse a value from which the worker could not make what the parameter is annotated as."""
        if type(value) not in self._expected.get(name, {type(value)}):
            self._look_closer(name, value)

    def _look_closer(self, name: str, value: Any) -> None:
        """Refuse a value from which the worker could not make what the parameter is annotated as."""
        if value is None:
            raise InvalidArguments(
                name=self._name,
                reason=f"{name} is None, but its annotation does not allow that. If it is the key of a new object, "
                "flush first (session.flush()), so that the database gives it one",
            )
        stored = decode_json(encode({name: value}, limit=sys.maxsize))[name]
        try:
            _named(name, self._ready()[name][1], stored)
        except Mismatch as mismatch:
            reason = f"{mismatch}, but is of the type {type(value).__qualname__}"
            raise InvalidArguments(name=self._name, reason=reason) from None

    def decode(self, body: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments for the handler; UndecodableTask if the body does not fit it."""
        converters = self._ready()
        try:
            return self._decode(body, converters)
        except Exception as error:
            raise UndecodableTask(name=self._name, reason=decoding_reason(error)) from error

    def _decode(self, body: str, converters: Converters) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = decode_json(body)
        if type(values) is not dict:
            raise Mismatch("an object keyed by parameter name")
        for name, value in values.items():
            exact, convert = converters.get(name) or self._other(name, converters)
            if type(value) is not exact:
                values[name] = _named(name, convert, value)
        if not self._required <= values.keys():
            raise Mismatch("there", ", ".join(sorted(self._required - values.keys())))
        if not self._by_position:
            return (), values
        return self._split(values)

    def _split(self, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        parameters = self._signature.parameters
        args = []
        for name in self._by_position:
            default = parameters[name].default
            if name not in values and default is parameters[name].empty:
                break
            args.append(values.pop(name, default))
        rest = values.pop(self._rest, []) if self._rest else []
        return (*args, *rest), values

    def _other(self, name: str, converters: Converters) -> tuple[type | None, Converter]:
        """What converts a keyword that has no parameter of its own."""
        if self._others is None:
            raise Mismatch("left out, because the handler has no such parameter", name)
        return converters[self._others]

    def _misfit(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> InvalidArguments:
        unknown = next((name for name in kwargs if name not in self._keywords), None)
        if unknown is not None and self._others is None:
            near = difflib.get_close_matches(unknown, self._keywords, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            return InvalidArguments(name=self._name, reason=f"it has no parameter {unknown}{hint}")
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            return InvalidArguments(name=self._name, reason=str(error))
        return InvalidArguments(name=self._name, reason="two arguments would be stored under one name")


def signature_of(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """The signature, InvalidHandler where there is none to read."""
    try:
        if sys.version_info >= (3, 14):  # annotations are evaluated when asked for, and a name may be missing then
            import annotationlib

            return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise InvalidHandler(name=name, reason="it has no signature to read") from None


def plain_function(function: Any) -> Any:
    """The function in whose module the annotations were written."""
    function = inspect.unwrap(function)
    if isinstance(function, functools.partial):
        return plain_function(function.func)
    if isinstance(function, types.MethodType):
        return function.__func__
    return function if isinstance(function, types.FunctionType) else type(function).__call__


def is_context(parameter: inspect.Parameter, function: Callable[..., Any], kind: type[HandlerContext]) -> bool:
    """Whether the parameter is annotated to be given a context of this kind."""
    annotation = parameter.annotation
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        # Often imported for type checkers only, so the name alone must do.
        if annotation.rpartition(".")[2] == kind.__name__:
            return True
        annotation = getattr(plain_function(function), "__globals__", {}).get(annotation)
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _accepts_none(convert: Converter) -> bool:
    if convert is as_is:
        return True
    try:
        convert(None)
    except Exception:  # noqa: BLE001 - a converter may raise anything, and then it takes no None
        return False
    return True


def decoding_reason(error: BaseException) -> str:
    """Why a body does not fit, in a line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a class of the user may fail at that too
        text = "no text"
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"


def _named(name: str, convert: Converter, value: Any) -> Any:
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise mismatch.inside(name) from mismatch.__cause__
