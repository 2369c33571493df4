"""MySQL and MariaDB: named locks of a connection, and the statements of a MEMORY table of reservations.

A MEMORY table takes no part in transactions, and with GTID consistency it must not be written beside an InnoDB table in
one: each of these statements is to run in AUTOCOMMIT.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Float,
    Integer,
    String,
    Table,
    TextClause,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects.mysql import insert

from sa_taskqueue.adapters.base import Adapter, lock_key
from sa_taskqueue.adapters.shapes import ReservationShape, SessionLockShape


def session_locks() -> SessionLockShape:
    """`GET_LOCK` over names that are brought along. A name has 29 characters; the limit is 64."""
    name = literal_column("brought.name", String())
    brought = _brought("name", 64)
    connection = func.connection_id()
    return SessionLockShape(
        session=select(connection, func.database()),
        take=select(name, func.get_lock(name, literal_column("0")) == literal_column("1"), connection).select_from(
            brought
        ),
        free=select(func.release_lock(name)).select_from(brought),
        taken=select(name)
        .select_from(brought)
        .where(func.is_used_lock(name, type_=BigInteger()) == bindparam("session", type_=Integer())),
        key=_lock_name,
        pack=lambda names: json.dumps(list(names)),
    )


def reservation_rows(table: Table, adapter: Adapter) -> ReservationShape:
    """An INSERT takes over what has expired; what it got is read back by the token."""
    columns = table.c
    until = adapter.after(bindparam("lease", type_=Float()))
    token = bindparam("token", type_=columns.token.type)
    rows = select(func.unhex(literal_column("brought.id")), token, until).select_from(_brought("id", 32))
    expired = columns.reserved_until <= adapter.clock()
    reserve = (
        insert(table)
        .from_select(["id", "token", "reserved_until"], rows)
        .on_duplicate_key_update(
            [
                # In this order: the second assignment sees what the first has done.
                ("token", getattr(func, "if")(expired, token, columns.token)),
                ("reserved_until", getattr(func, "if")(columns.token == token, until, columns.reserved_until)),
            ]
        )
    )
    these = columns.id.in_(bindparam("ids", expanding=True)) & columns.token.in_(bindparam("tokens", expanding=True))
    return ReservationShape(
        reserve=reserve,
        renew=update(table).where(these).values(reserved_until=until),
        remove=delete(table).where(these),
        mine=select(columns.id).where(these),
        returns=False,
        transactional=False,
        pack=_packed,
    )


def _brought(name: str, width: int) -> TextClause:
    """The strings of the JSON array ``packed``, as rows of one column."""
    array = f"JSON_TABLE(:packed, '$[*]' COLUMNS({name} CHAR({width}) PATH '$')) AS brought"
    return text(array).bindparams(bindparam("packed", type_=String()))


def _lock_name(name: str) -> str:
    return f"sa_taskqueue:{lock_key(name) & 0xFFFFFFFFFFFFFFFF:016x}"


def _packed(ids: Sequence[UUID]) -> Any:
    return json.dumps([task.hex for task in ids])
