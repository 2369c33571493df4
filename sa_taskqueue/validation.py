"""Checks of what a caller may ask for; each refuses before anything is sent to the database."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sa_taskqueue.exceptions import (
    InvalidAttempts,
    InvalidDatetime,
    InvalidDelay,
    InvalidHeaders,
    InvalidMessage,
    InvalidName,
    InvalidPriority,
    InvalidSetting,
    InvalidUniqueKey,
    NaiveDatetime,
)

QUEUE_NAME_LIMIT = 64
TASK_NAME_LIMIT = 120
MOST_ATTEMPTS = 1000
UNIQUE_KEY_LIMIT = 1024
HEADERS_LIMIT = 16 * 1024
SOURCE_LIMIT = 255

# MySQL's DATETIME starts at the year 1000; above 9000 adding a lease can leave what drivers can read.
FIRST_YEAR = 1000
LAST_YEAR = 9000
LONGEST_DELAY_DAYS = 36_525

_URI = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def whole_number(value: object) -> bool:
    """Tell whether a value is an int and not a bool, which Python counts among the ints."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_name(field: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit or not _NAME.fullmatch(value):
        raise InvalidName(field=field, value=value, limit=limit)
    return value


def check_task(name: object) -> str:
    return check_name("task", name, TASK_NAME_LIMIT)


def check_queue(name: object) -> str:
    return check_name("queue", name, QUEUE_NAME_LIMIT)


def check_priority(value: int) -> int:
    if not whole_number(value) or not -100 <= value <= 100:
        raise InvalidPriority(value=value)
    return int(value)


def check_attempts(value: int) -> int:
    if not whole_number(value) or not 1 <= value <= MOST_ATTEMPTS:
        raise InvalidAttempts(value=value, limit=MOST_ATTEMPTS)
    return int(value)


def check_seconds(setting: str, value: float | timedelta) -> float:
    """A positive number of seconds, at most the longest delay."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= _longest().total_seconds():
        raise InvalidSetting(setting=setting, value=value, allowed="a positive number of seconds")
    return float(seconds)


def check_retry(value: Any) -> Any:
    """A policy is whatever has the methods of one."""
    if value is not None and not callable(getattr(value, "delay", None)):
        allowed = "a policy such as exponential(max_attempts=3); for a number of attempts alone use max_attempts="
        raise InvalidSetting(setting="retry", value=value, allowed=allowed)
    return value


def check_run_after(value: datetime | timedelta | None) -> tuple[datetime | None, timedelta | None]:
    """Split into a point in time (UTC) and a delay, of which at most one is set; no delay means now."""
    if value is None:
        return None, None
    if isinstance(value, timedelta):
        if not timedelta(0) <= value <= _longest():
            raise InvalidDelay(value=str(value), limit=LONGEST_DELAY_DAYS)
        return None, value or None
    if isinstance(value, datetime):
        return check_datetime("run_after", value), None
    raise InvalidSetting(setting="run_after", value=value, allowed="a timedelta or a datetime with a time zone")


def check_datetime(field: str, value: datetime) -> datetime:
    """The same instant in UTC."""
    if value.utcoffset() is None:
        raise NaiveDatetime(field=field)
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise InvalidDatetime(field=field, value=str(value), first=FIRST_YEAR, last=LAST_YEAR)
    return value.astimezone(UTC)


def check_choice(setting: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidSetting(setting=setting, value=value, allowed="one of " + ", ".join(choices))


def check_unique_key(value: str) -> str:
    if not isinstance(value, str):
        raise InvalidUniqueKey(reason="it must be a string")
    if not 0 < len(value) <= UNIQUE_KEY_LIMIT:
        raise InvalidUniqueKey(reason=f"it has {len(value)} characters, but may have 1 to {UNIQUE_KEY_LIMIT}")
    if _UNSTORABLE.search(value):
        raise InvalidUniqueKey(reason="it holds a NUL or half of a surrogate pair")
    return value


def check_message_text(field: str, value: object, limit: int) -> str:
    """A text of 1 to ``limit`` characters that every database can store."""
    if not isinstance(value, str):
        raise InvalidMessage(field=field, reason=f"it is of the type {type(value).__qualname__}, but must be a string")
    if not 0 < len(value) <= limit:
        raise InvalidMessage(field=field, reason=f"it has {len(value)} characters, but may have 1 to {limit}")
    if _UNSTORABLE.search(value):
        raise InvalidMessage(field=field, reason="it holds a NUL or half of a surrogate pair")
    return value


def check_word(field: str, value: object, limit: int) -> str:
    """As `check_message_text`, without spaces and what cannot be printed."""
    text = check_message_text(field, value, limit)
    if not text.isprintable() or " " in text:
        raise InvalidMessage(field=field, reason="it holds a space or what cannot be printed")
    return text


def check_source(value: str) -> str:
    """What names a service in its messages: CloudEvents asks for a URI reference that is not empty."""
    if not isinstance(value, str) or not 0 < len(value) <= SOURCE_LIMIT or not _URI.fullmatch(value):
        allowed = f'a URI or a part of one such as "/shop", of at most {SOURCE_LIMIT} characters'
        raise InvalidSetting(setting="source", value=value, allowed=allowed)
    return value


def check_headers(headers: Mapping[str, str]) -> str | None:
    """The headers as JSON text; None for no headers."""
    if not isinstance(headers, Mapping):
        raise InvalidHeaders(reason="they are not a mapping", limit=HEADERS_LIMIT)
    for key, value in headers.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidHeaders(reason="a name or a value is not a string", limit=HEADERS_LIMIT)
        if _UNSTORABLE.search(key) or _UNSTORABLE.search(value):
            raise InvalidHeaders(reason="a text holds a NUL or half of a surrogate pair", limit=HEADERS_LIMIT)
    if not headers:
        return None
    text = json.dumps(dict(headers), ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > HEADERS_LIMIT:
        raise InvalidHeaders(reason="they are too large", limit=HEADERS_LIMIT)
    return text


def _longest() -> timedelta:
    return timedelta(days=LONGEST_DELAY_DAYS)
