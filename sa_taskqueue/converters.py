"""From what JSON gave to what a parameter is annotated as.

`converter_for` builds a function once per annotation, so that decoding a task only calls it.
"""

from __future__ import annotations

import collections.abc
import enum
import json
import sys
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from sa_taskqueue.scalars import PLAIN, RICH, Converter, Mismatch, as_is, exactly


class UnsupportedAnnotation(TypeError):
    """An annotation that no JSON value can be turned into."""

    def __init__(self, annotation: object, reason: str = "cannot be made from JSON") -> None:
        super().__init__(f"{_name(annotation)} {reason}")


def converter_for(annotation: object) -> Converter:
    """A function from a JSON value to the annotated type, raising Mismatch; UnsupportedAnnotation if there is none."""
    return _Compiler().compile(annotation)


def fitting_types(annotation: object) -> frozenset[type]:
    """Types whose values, stored as JSON, surely fit the annotation, contents aside; others fit perhaps."""
    annotation = _unwrap(annotation)
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        return frozenset().union(*map(fitting_types, typing.get_args(annotation)))
    if origin is typing.Literal:
        return frozenset(map(type, typing.get_args(annotation)))
    if origin is float:
        return frozenset({float, int})
    if origin in _LISTS or origin is tuple:
        return frozenset({list, tuple})
    if origin in _DICTS or typing.is_typeddict(origin):
        return frozenset({dict})
    return frozenset({origin}) if isinstance(origin, type) else frozenset()


def listed_values(annotation: object) -> tuple[Any, ...]:
    """The values of enums and Literals in the annotation, as they are stored; the only ones that fit it."""
    annotation = _unwrap(annotation)
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        return tuple(value for member in typing.get_args(annotation) for value in listed_values(member))
    if origin is typing.Literal:
        members: tuple[Any, ...] = typing.get_args(annotation)
    else:
        members = tuple(origin) if isinstance(origin, type) and issubclass(origin, enum.Enum) else ()
    return tuple(member.value if isinstance(member, enum.Enum) else member for member in members)


_LISTS = (
    list,
    collections.abc.Collection,
    collections.abc.Iterable,
    collections.abc.MutableSequence,
    collections.abc.Sequence,
)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class _Compiler:
    """Builds the converters of one annotation; remembers records, because they may hold themselves."""

    def __init__(self) -> None:
        self._records: dict[type, Converter] = {}

    def compile(self, annotation: Any) -> Converter:
        annotation = _unwrap(annotation)
        try:
            simple = PLAIN.get(annotation) or RICH.get(annotation)
        except TypeError:
            raise UnsupportedAnnotation(annotation) from None
        if simple is not None:
            return simple
        origin = typing.get_origin(annotation) or annotation
        arguments = typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin is typing.Literal:
            return _literal(arguments)
        if origin in _LISTS:
            return self._list(arguments)
        if origin in _DICTS:
            return self._dict(annotation, arguments)
        if origin is tuple:
            return self._tuple(arguments)
        if isinstance(origin, type):
            return self._class(origin)
        raise UnsupportedAnnotation(annotation)

    def _class(self, kind: type) -> Converter:
        if hasattr(kind, "__mapper__"):
            raise UnsupportedAnnotation(kind, "is a mapped class; take the key of its row instead")
        if issubclass(kind, enum.Enum):
            return _enum(kind)
        if kind not in self._records:
            if is_dataclass(kind):
                return self._dataclass(kind)
            if typing.is_typeddict(kind):
                return self._typed_dict(kind)
            if issubclass(kind, tuple) and hasattr(kind, "_fields"):
                return self._named_tuple(kind)
            self._records[kind] = _library_model(kind)
        return self._records[kind]

    def _union(self, members: tuple[Any, ...]) -> Converter:
        """Try the members that JSON does not know first: a UUID is more than text, a date less than a datetime."""
        members = tuple(map(_unwrap, members))
        plain = [member for member in members if member in PLAIN]
        rich = [self.compile(member) for member in members if member not in PLAIN]
        if len(rich) == 1 and plain == [type(None)]:
            return optional(rich[0])
        exact = frozenset(plain)
        choices = rich + [PLAIN[member] for member in plain]

        def convert(value: Any) -> Any:
            if not rich and type(value) in exact:
                return value
            for choice in choices:
                try:
                    return choice(value)
                except Mismatch:
                    continue
            raise Mismatch("one of " + ", ".join(_name(member) for member in members))

        return convert

    def _list(self, arguments: tuple[Any, ...]) -> Converter:
        return list_of(self.compile(arguments[0]) if arguments else as_is)

    def _tuple(self, arguments: tuple[Any, ...]) -> Converter:
        if not arguments:
            return lambda value: tuple(_convert_items(value, as_is))
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = self.compile(arguments[0])
            return lambda value: tuple(_convert_items(value, item))
        items = [self.compile(argument) for argument in arguments]
        return lambda value: tuple(_convert_each(value, items))

    def _named_tuple(self, kind: Any) -> Converter:
        hints = typing.get_type_hints(kind)
        items = [self.compile(hints.get(name, Any)) for name in kind._fields]
        return lambda value: kind(*_convert_each(value, items))

    def _dict(self, annotation: object, arguments: tuple[Any, ...]) -> Converter:
        if not arguments:
            return exactly(dict, "an object")
        key, item = self.compile(arguments[0]), self.compile(arguments[1])
        if not _may_be_key(_unwrap(arguments[0])):
            raise UnsupportedAnnotation(annotation)

        def convert(value: Any) -> Any:
            if type(value) is not dict:
                raise Mismatch("an object")
            return {key(name): _at(f".{name}", item, each) for name, each in value.items()}

        return convert

    def _dataclass(self, kind: Any) -> Converter:
        required = frozenset(
            field.name
            for field in fields(kind)
            if field.init and field.default is MISSING and field.default_factory is MISSING
        )
        return self._record(kind, {field.name for field in fields(kind) if field.init}, required)

    def _typed_dict(self, kind: Any) -> Converter:
        hints = typing.get_type_hints(kind, include_extras=True)
        # __required_keys__ alone does not see NotRequired where annotations are strings.
        optional_keys = {name for name, hint in hints.items() if typing.get_origin(hint) is typing.NotRequired}
        return self._record(kind, set(hints), frozenset(kind.__required_keys__ - optional_keys))

    def _record(self, kind: Any, names: set[str], required: frozenset[str]) -> Converter:
        converters: dict[str, Converter] = {}

        def convert(value: Any) -> Any:
            if type(value) is not dict:
                raise Mismatch(f"an object with the fields of {kind.__qualname__}")
            for name in value.keys() - converters.keys():
                raise Mismatch(f"left out, because {kind.__qualname__} has no such field", f".{name}")
            for name in sorted(required - value.keys()):
                raise Mismatch("there", f".{name}")
            return kind(**{name: _at(f".{name}", converters[name], each) for name, each in value.items()})

        self._records[kind] = convert
        hints = typing.get_type_hints(kind)
        converters.update((name, self.compile(hints[name])) for name in names)
        return convert


def _unwrap(annotation: Any) -> Any:
    """Take off what means nothing to a value: Annotated, NewType, Required, `type X = ...`, type variables."""
    while True:
        origin = typing.get_origin(annotation)
        if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.Final):
            annotation = typing.get_args(annotation)[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # typing's from Python 3.12 on
            annotation = annotation.__value__
        elif isinstance(annotation, typing.TypeVar):
            annotation = annotation.__bound__ or Any
        else:
            return annotation


def _may_be_key(annotation: Any) -> bool:
    return annotation in (str, Any) or (isinstance(annotation, type) and issubclass(annotation, str))


def _at(step: str, convert: Converter, value: Any) -> Any:
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise mismatch.inside(step) from None


def _convert_items(value: Any, convert: Converter) -> list[Any]:
    if type(value) is not list:
        raise Mismatch("a list")
    if convert is as_is:
        return value
    return [_at(f"[{index}]", convert, each) for index, each in enumerate(value)]


def _convert_each(value: Any, converters: list[Converter]) -> list[Any]:
    if type(value) is not list or len(value) != len(converters):
        raise Mismatch(f"a list of {len(converters)} items")
    return [_at(f"[{index}]", convert, value[index]) for index, convert in enumerate(converters)]


def list_of(convert: Converter) -> Converter:
    """A list whose items are all converted so."""
    return lambda value: _convert_items(value, convert)


def optional(convert: Converter) -> Converter:
    """The same conversion, or null."""
    return lambda value: None if value is None else convert(value)


def _literal(choices: tuple[Any, ...]) -> Converter:
    def convert(value: Any) -> Any:
        for choice in choices:
            raw = choice.value if isinstance(choice, enum.Enum) else choice
            if type(raw) is type(value) and raw == value:
                return choice
        raise Mismatch("one of " + ", ".join(map(repr, choices)))

    return convert


def _enum(kind: type[enum.Enum]) -> Converter:
    def convert(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            pass
        for member in kind:  # a value that is a tuple came back as a list, a Decimal as text
            if _same(member.value, value):
                return member
        raise Mismatch(f"a value of {kind.__qualname__}")

    return convert


def _same(value: object, stored: object) -> bool:
    if isinstance(value, tuple):
        return list(value) == stored
    return isinstance(stored, str) and str(value) == stored


def _library_model(kind: Any) -> Converter:
    """A msgspec struct or pydantic model; the package was imported by whoever made the class."""
    msgspec, pydantic = sys.modules.get("msgspec"), sys.modules.get("pydantic")
    if msgspec is not None and issubclass(kind, msgspec.Struct):
        return _checked(kind, lambda value: msgspec.convert(value, kind))
    if pydantic is not None and issubclass(kind, pydantic.BaseModel):
        return _checked(kind, lambda value: kind.model_validate_json(json.dumps(value)))
    raise UnsupportedAnnotation(kind)


def _checked(kind: type, convert: Converter) -> Converter:
    def checked(value: Any) -> Any:
        try:
            return convert(value)
        except ValueError as error:  # both libraries' validation errors are ValueErrors
            raise Mismatch(f"what {kind.__qualname__} accepts") from error

    return checked


def _name(annotation: object) -> str:
    if annotation is type(None):
        return "null"
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
