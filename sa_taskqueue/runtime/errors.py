"""What is stored about an error: bounded JSON that every database accepts."""

from __future__ import annotations

import datetime as dt
import json
import traceback
from typing import Any

MAX_MESSAGE = 2_000
"""Characters kept of an error's message."""

MAX_TRACEBACK = 8_000
"""Characters kept of a traceback, from its end, where the cause is."""

MAX_HISTORY = 10
"""How many earlier errors of a task are kept, newest last."""

_MAX_HISTORY_MESSAGE = 200
_MAX_FRAMES = 50


def record(code: str, error: BaseException | None, attempt: int, *, message: object = None) -> dict[str, Any]:
    """One error as it is stored; `at` is this machine's clock, for people to read. Any object may be the message."""
    return {
        "code": code,
        "type": "" if error is None else storable(type(error).__qualname__),
        "message": trim(describe(error if message is None else message), MAX_MESSAGE),
        "traceback": "" if error is None else trim_start(trace(error), MAX_TRACEBACK),
        "attempt": attempt,
        "at": dt.datetime.now(dt.UTC).isoformat(),
    }


def dump(value: object) -> str:
    """JSON text for the columns `error` and `errors`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def extend(history: str | None, entry: dict[str, Any]) -> str:
    """The history with one more error, shortened to the newest ones; a history nobody can read is begun anew."""
    short = {key: value for key, value in entry.items() if key != "traceback"}
    short["message"] = short["message"][:_MAX_HISTORY_MESSAGE]
    return dump([*_read(history)[-(MAX_HISTORY - 1) :], short])


def describe(error: object) -> str:
    """The error's own text; one whose `__str__` fails is named by its type."""
    if error is None:
        return ""
    try:
        return str(error)
    except Exception as failed:  # noqa: BLE001  an exception of the user's own, with any bug in it
        return f"{type(error).__qualname__}, whose text could not be made: {type(failed).__qualname__}"


def trace(error: BaseException) -> str:
    """The traceback with its causes; empty for an error that was never raised."""
    if error.__traceback__ is None:
        return ""
    try:
        return "".join(traceback.format_exception(error, limit=-_MAX_FRAMES))
    except Exception as failed:  # noqa: BLE001  likewise
        return f"no traceback: {type(failed).__qualname__}"


def storable(text: str) -> str:
    """The text without what PostgreSQL's jsonb and utf8mb4 refuse: NUL and lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def trim(text: str, limit: int) -> str:
    """At most `limit` characters of the beginning."""
    text = storable(text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def trim_start(text: str, limit: int) -> str:
    """At most `limit` characters of the end."""
    text = storable(text)
    return text if len(text) <= limit else "..." + text[3 - limit :]


def _read(history: str | None) -> list[Any]:
    if not history:
        return []
    try:
        entries = json.loads(history)
    except ValueError:
        return []
    return entries if isinstance(entries, list) else []
