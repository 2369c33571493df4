"""Values to strict JSON text and back to annotated types.

Beside JSON's own types: datetime, date, Decimal, UUID, bytes (base64), enums (by value), dataclasses, and
msgspec structs and pydantic models where those packages are installed. A tuple becomes a list, and a tuple
again where it is annotated so.
"""

from __future__ import annotations

import base64
import enum
import json
import math
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sa_taskqueue.converters import converter_for
from sa_taskqueue.exceptions import BodyInvalid, BodyNotSerializable, BodyTooDeep, BodyTooLarge, NaiveDatetime

MAX_BODY: Final = 256 * 1024
MAX_DEPTH: Final = 64

_SUPPORTED = (
    "use JSON's own types, datetime, date, Decimal, UUID, bytes, an enum, a dataclass, "
    "a msgspec struct or a pydantic model"
)
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})

# What goes around in a circle has been found by its depth before.
_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode_json = json.JSONDecoder(parse_constant=_refuse_constant).decode


def encode(value: object, *, limit: int = MAX_BODY, what: str = "arguments") -> str:
    """JSON text of at most ``limit`` bytes in UTF-8; a BodyError names the path of what cannot be stored.

    ``what`` is what the value is to the user, for the error.
    """
    text = _fast(value)
    if text is None:
        text = _encode_json(_to_plain(value, "$", 0))
    size = len(text) if text.isascii() else len(text.encode())
    if size > limit:
        raise BodyTooLarge(what=what, size=size, limit=limit)
    return text


def decode(text: str, annotation: object = Any) -> Any:
    """The value that JSON text stands for, as the annotated type; ValueError if it does not fit."""
    return converter_for(annotation)(decode_json(text))


def decode_json(text: str) -> Any:
    """Strict JSON; ValueError for NaN, numbers too long for Python, and nesting too deep for it."""
    try:
        return _decode_json(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _fast(value: object) -> str | None:
    """The text of a value that is plain JSON already, as nearly all are; None if it needs the careful way."""
    if not _is_plain(value, 0):
        return None
    try:
        text = _encode_json(value)
    except ValueError:  # NaN, or an int with more digits than Python converts
        return None
    if "\\u0000" in text:  # perhaps a NUL, perhaps a backslash before the letters
        return None
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return None
    return text


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _SCALARS:
        return True
    if depth >= MAX_DEPTH:
        return False
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or (type(item) not in _SCALARS and not _is_plain(item, depth + 1)):
                return False
        return True
    if kind is list or kind is tuple:
        return all(type(item) in _SCALARS or _is_plain(item, depth + 1) for item in value)
    return False


def _to_plain(value: object, path: str, depth: int) -> object:
    """The same value in JSON's own types, checked; slow, but knows where it is."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _to_plain(value.value, path, depth)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, (int, float, Decimal)):
        return _number(value, path)
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value, path)
    return _container(value, path, depth)


def _text(value: str, path: str) -> str:
    if "\0" in value:
        raise BodyInvalid(path=path, what="a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BodyInvalid(path=path, what="half of a surrogate pair") from None
    return str.__str__(value)


def _number(value: float | Decimal, path: str) -> object:
    if isinstance(value, int):
        digits = sys.get_int_max_str_digits()
        # A decimal digit is more than 3.3 bits; Python refuses to write or read longer ones.
        if digits and value.bit_length() > 3.32 * digits:
            raise BodyNotSerializable(path=path, reason=f"the number has more than {digits} digits")
        return int(value)
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise BodyNotSerializable(path=path, reason="JSON knows no NaN and no infinity")
    return float(value) if isinstance(value, float) else str(value)


def _datetime(value: datetime, path: str) -> str:
    if value.utcoffset() is None:
        raise NaiveDatetime(field=f"the value at {path}")
    return value.isoformat()


_WRITERS: tuple[tuple[type, Callable[[Any, str], object]], ...] = (
    (datetime, _datetime),
    (date, lambda value, _path: value.isoformat()),
    (UUID, lambda value, _path: str(value)),
    (bytes, lambda value, _path: base64.b64encode(value).decode()),
)


def _container(value: object, path: str, depth: int) -> object:
    if depth >= MAX_DEPTH:
        raise BodyTooDeep(path=path if len(path) < 80 else path[:80] + "...", limit=MAX_DEPTH)
    if isinstance(value, dict):
        return {_key(key, path): _to_plain(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if hasattr(value, "_sa_instance_state"):
        raise BodyNotSerializable(
            path=path, reason=f"{type(value).__qualname__} is a mapped object; pass its key instead"
        )
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return {name: _to_plain(getattr(value, name), f"{path}.{name}", depth + 1) for name in names}
    dump = _library_dump(value)
    if dump is None:
        raise BodyNotSerializable(path=path, reason=f"{type(value).__qualname__} is not JSON; {_SUPPORTED}")
    try:
        plain = dump()
    except (TypeError, ValueError) as error:
        raise BodyNotSerializable(path=path, reason=f"{type(value).__qualname__} refused: {error}") from error
    return _to_plain(plain, path, depth)


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise BodyNotSerializable(path=path, reason=f"a key is {type(key).__qualname__}, but JSON has only text keys")
    return _text(key.value if isinstance(key, enum.Enum) else key, path)


def _library_dump(value: Any) -> Callable[[], object] | None:
    """What puts a msgspec struct or pydantic model into plain types; neither package is imported for it."""
    msgspec, pydantic = sys.modules.get("msgspec"), sys.modules.get("pydantic")
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return lambda: msgspec.to_builtins(value, str_keys=True)
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return lambda: value.model_dump(mode="json", by_alias=True, round_trip=True)
    return None
