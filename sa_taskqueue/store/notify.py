"""Wake-ups that the database itself sends when the transaction commits (NOTIFY on PostgreSQL)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from sqlalchemy import Connection, Table

from sa_taskqueue.adapters.registry import adapter_for

_PREFIX = "sa_taskqueue_"
_LONGEST = 63
"""Bytes of a channel's name on PostgreSQL, which cuts nothing here: it raises an error."""


def channel_of(table: Table) -> str:
    """The channel on which work in the table is announced: readable where the table's name allows, else with a hash."""
    name = table.fullname
    readable = _PREFIX + re.sub(r"[^A-Za-z0-9_]", "_", name)
    if len(readable) <= _LONGEST and readable == _PREFIX + name:
        return readable
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{readable[: _LONGEST - len(digest) - 1]}_{digest}"


def notify(connection: Connection, table: Table, queues: Iterable[str]) -> None:
    """Announce that these queues have work, once the transaction commits; nothing where the database has no such thing.

    Never in a two-phase transaction: PostgreSQL refuses to prepare one that has notified.
    """
    adapter = adapter_for(connection.dialect)
    for queue in sorted(queues):
        statement = adapter.notify(channel_of(table), queue)
        if statement is not None:
            connection.execute(statement)
