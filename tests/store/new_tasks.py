"""New tasks for the tests of the store, made without handlers."""

from __future__ import annotations

from typing import Any

from sa_taskqueue.definitions import NewTask
from sa_taskqueue.ids import new_id
from sa_taskqueue.models.keys import unique_hash

DEFAULTS: dict[str, Any] = {
    "name": "mail",
    "queue": "default",
    "priority": 0,
    "run_at": None,
    "delay": None,
    "body": "{}",
    "headers": None,
    "max_attempts": 10,
    "unique_key": None,
    "unique_hash": None,
    "unique_until": None,
    "on_duplicate": None,
}


def new_task(**options: Any) -> NewTask:
    return NewTask(**{"id": new_id(), **DEFAULTS, **options})


def keyed_task(key: str, on_duplicate: str = "ignore", until: str = "end", **options: Any) -> NewTask:
    hashed = unique_hash(options.get("name", DEFAULTS["name"]), key)
    return new_task(unique_key=key, unique_hash=hashed, unique_until=until, on_duplicate=on_duplicate, **options)
