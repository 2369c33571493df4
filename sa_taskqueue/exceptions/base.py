"""The base of all errors, whose docstrings are their messages."""

from __future__ import annotations

import inspect
import uuid

# A message quotes values; a hostile or mistaken one of 10 MB must not travel into logs.
_LONGEST_QUOTE = 200


class TaskQueueError(Exception):
    """The task queue failed."""

    code = "error"

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)
        self.fields = fields
        super().__init__(_message(type(self), fields))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.fields)


def _rebuild(kind: type[TaskQueueError], fields: dict[str, object]) -> TaskQueueError:
    return kind(**fields)


def _message(kind: type[TaskQueueError], fields: dict[str, object]) -> str:
    if not kind.__doc__:  # python -OO drops docstrings
        return f"{kind.code}: {', '.join(sorted(fields))}"
    template = " ".join(inspect.cleandoc(kind.__doc__).split())
    return template.format(**{name: _quote(value) for name, value in fields.items()})


def _quote(value: object) -> str:
    text = str(value) if isinstance(value, (str, uuid.UUID)) else ascii(value)
    text = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
