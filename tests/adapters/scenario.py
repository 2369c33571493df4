"""Every statement that the store sends, by what it is for; `SERVERS` are those that are only pinned, never run."""

from __future__ import annotations

import datetime as dt
import re
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect
from sqlalchemy.dialects.mssql import pymssql
from sqlalchemy.dialects.oracle import oracledb
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.schema import CreateIndex, CreateTable

from sa_taskqueue.adapters import registry
from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.models.keys import unique_hash
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement, TaskStore, control
from sa_taskqueue.store.drift import check_writable
from sa_taskqueue.store.fetching import skip_locked_first
from sa_taskqueue.store.inserts import insert_many
from sa_taskqueue.store.reading import Unreadable
from sa_taskqueue.store.stats import statistics
from sa_taskqueue.store.unique import insert_unique
from tests.adapters.recorder import Driver, Recorder
from tests.models import Base
from tests.store.new_tasks import new_task

EXAMPLE = Path(__file__).parents[2] / "examples" / "cockroachdb_adapter"
TABLE = Base.metadata.tables["task"]
TASK, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)
HELD = [(TASK, 1)]
NOW = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
KEYED = {"unique_key": "key", "unique_hash": unique_hash("send", "key"), "unique_until": "end", "name": "send"}


def _oracle() -> Dialect:
    dialect: Dialect = oracledb.dialect(dbapi=Driver("named"))  # type: ignore[no-untyped-call]
    dialect.server_version_info = (19, 3, 0)
    return dialect


def _mssql() -> Dialect:
    dialect: Any = pymssql.dialect(dbapi=Driver("pyformat"))  # type: ignore[no-untyped-call]
    dialect.server_version_info = (16, 0)
    dialect._supports_offset_fetch = True  # as its first connection finds
    return dialect  # type: ignore[no-any-return]


def _cockroachdb() -> Dialect:
    dialect: Any = PGDialect(dbapi=Driver("pyformat"))  # type: ignore[no-untyped-call, arg-type]
    dialect.name = "cockroachdb"
    dialect.server_version_info = (24, 1)
    return dialect  # type: ignore[no-any-return]


SERVERS: dict[str, Callable[[], Dialect]] = {"oracle": _oracle, "mssql": _mssql, "cockroachdb": _cockroachdb}


def adapter_of(dialect: Dialect) -> Adapter:
    """As the registry finds it; the example's adapter without its being installed."""
    if dialect.name != "cockroachdb":
        return registry.adapter_for(dialect)
    sys.path.insert(0, str(EXAMPLE))
    try:
        from sa_taskqueue_cockroachdb import cockroachdb
    finally:
        sys.path.remove(str(EXAMPLE))
    adapter: Adapter = cockroachdb(dialect)
    return registry._adapters.setdefault((dialect.name, False, dialect.server_version_info), adapter)


def recorder(server: str) -> Recorder:
    dialect = SERVERS[server]()
    native = server == "cockroachdb"
    values: dict[str, Any] = {
        "id": TASK if native else TASK.bytes,
        "status": "RUNNING",
        "queue": "mail",
        "name": "send",
        "unique_key": None,
        "body": "{}",
        "seconds": -1.0,
        **dict.fromkeys(("headers", "error", "errors", "reserved_until"), None),
        **dict.fromkeys(("priority", "attempt", "crashes", "max_attempts", "epoch", "count_1"), 1),
    }
    moment = NOW if native else NOW.replace(tzinfo=None)
    return Recorder(dialect, lambda name: values.get(name, moment))


def sent_for(server: str, operation: str) -> list[str]:
    """The statements, or for "ddl" the DDL."""
    recording = recorder(server)
    adapter = adapter_of(recording.engine.dialect)
    if operation == "ddl":
        indexes = sorted(TABLE.indexes, key=lambda index: str(index.name))
        return [
            re.sub(r"\s+", " ", str(ddl.compile(dialect=recording.engine.dialect))).strip()
            for ddl in (CreateTable(TABLE), *map(CreateIndex, indexes))
        ]
    with recording.engine.begin() as connection:
        OPERATIONS[operation](TaskStore(TABLE, adapter), connection, recording)
    return recording.statements()


def _first(store: TaskStore, connection: Connection, _: Recorder) -> None:
    skip_locked_first(connection, store.adapter, store._claims._careful._due, {"of_queue": "mail"}, rows=1)


def _renew(store: TaskStore, connection: Connection, _: Recorder) -> None:
    """The second time the row seems locked, so that it is read again."""
    store.renew(connection, HELD, lease=60)
    store.renew(connection, HELD, lease=60)


def _prune(store: TaskStore, connection: Connection, recording: Recorder) -> None:
    """The first row may not go (a foreign key), so that a second batch is looked for."""

    def refuse(sql: str) -> None:
        if sql.startswith("DELETE"):
            recording.refuse = lambda _: None
            raise Driver.IntegrityError("a row refers to it")

    recording.refuse = refuse
    store.prune(connection, Status.COMPLETED, DAY, 1)


def _replace(store: TaskStore, connection: Connection, recording: Recorder) -> None:
    skips = store.adapter.insert_unless_taken(store.table, store.table.c.unique_hash) is not None

    def refuse(sql: str) -> None:
        inserts = sql.startswith("INSERT")
        recording.available = int(not inserts)
        if inserts and not skips:
            raise duplicate(recording.engine.dialect.name)

    recording.refuse = refuse
    insert_unique(connection, store.table, new_task(**KEYED, on_duplicate="replace"))


def duplicate(database: str) -> Exception:
    """What the driver raises for a taken key."""
    if database == "mssql":
        return Driver.IntegrityError(2601, b"Cannot insert duplicate key row with unique index 'uq_task_unique_hash'.")
    return Driver.IntegrityError("ORA-00001: unique constraint (APP.UQ_TASK_UNIQUE_HASH) violated")


def _retry(store: TaskStore, connection: Connection, recording: Recorder) -> None:
    usual = recording.value_of
    for key in (None, "key"):
        recording.sent.clear() if key is None else None
        changed = {"status": "FAILED", "unique_key": key}
        recording.value_of = lambda name, changed=changed: changed.get(name) if name in changed else usual(name)
        control.retry(connection, store.table, [TASK] if key is None else [TASK, OTHER])


def _end(**options: Any) -> Callable[[TaskStore, Connection, Recorder], object]:
    return lambda store, connection, _: store.settle(connection, [Settlement(TASK, 1, **options)])


Operation = Callable[[TaskStore, Connection, Recorder], object]

OPERATIONS: dict[str, Operation] = {
    "claim": lambda store, connection, _: store.claim(connection, "mail", 20, lease=60, by="me"),
    "claim_first": _first,
    "undecodable": lambda store, connection, _: store._claims.fail_unreadable(connection, Unreadable(TASK.bytes, "")),
    "take_over": lambda store, connection, _: store.take_over(connection, 100, max_crashes=3),
    "promote": lambda store, connection, _: store.promote(connection, 100),
    "agenda": lambda store, connection, _: store.next_due(connection),
    "renew": _renew,
    "release": lambda store, connection, _: store.release(connection, HELD),
    "give_back_unknown": lambda store, connection, _: store.give_back_unknown(connection, HELD, delay=1, fail_after=9),
    "complete": _end(status=Status.COMPLETED),
    "delete": _end(status=Status.COMPLETED, delete=True),
    "fail": _end(status=Status.FAILED, error="{}"),
    "try_again": _end(status=Status.SCHEDULED, delay=5.0),
    "settle_together": lambda store, connection, _: store.settle(
        connection,
        [Settlement(OTHER, 1, Status.COMPLETED), Settlement(TASK, 1, Status.COMPLETED, delete=True)],
    ),
    "prune": _prune,
    "insert": lambda store, connection, _: insert_many(connection, store.table, [new_task()]),
    "insert_later": lambda store, connection, _: insert_many(connection, store.table, [new_task(delay=DAY)]),
    "insert_unique": lambda store, connection, _: insert_unique(connection, store.table, new_task(**KEYED)),
    "replace": _replace,
    "list": lambda store, connection, _: control.list_tasks(connection, store.table, statuses=[Status.FAILED]),
    "find": lambda store, connection, _: control.find(
        connection, store.table, control.Choice(queue="mail"), [Status.FAILED], after=TASK
    ),
    "retry": _retry,
    "cancel": lambda store, connection, _: control.cancel(connection, store.table, [TASK], running=True),
    "statistics": lambda store, connection, _: statistics(connection, store.table),
    "check_writable": lambda store, connection, _: check_writable(connection, store.table),
}
