"""Oracle without a server: how many rows leave it, and which."""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Index, Integer, MetaData, Table, text
from sqlalchemy.dialects import oracle
from sqlalchemy.schema import CreateIndex

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.ids import new_id
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement, TaskStore
from tests.adapters.scenario import DAY, TABLE, adapter_of, recorder


@pytest.mark.parametrize("wanted", [1, 20])
def test_no_more_rows_are_fetched_than_are_claimed(wanted: int) -> None:
    """Each row that leaves the server is locked: the driver must not bring any ahead, in either round trip."""
    server = recorder("oracle")
    server.refuse = lambda sql: setattr(server, "available", 100 if "FOR UPDATE" in sql else wanted)
    store = TaskStore(TABLE, adapter_of(server.engine.dialect))
    with server.engine.begin() as connection:
        store.claim(connection, "mail", wanted, lease=60, by="me")

    cursor, read, change = server.sent
    assert (cursor.arraysize, cursor.prefetchrows) == (wanted, wanted)
    assert server.fetched[cursor.sql] == wanted
    assert read.sql.count(":ids_") == change.sql.count(":ids_") == wanted
    assert (read.arraysize, read.prefetchrows) == (100, 2), "other statements fetch as ever"


def test_a_row_that_somebody_has_changed_before_it_was_locked_is_left_alone() -> None:
    """The cursor shows the table as of its opening; under the locks it is read again, with the same conditions."""
    server = recorder("oracle")
    server.refuse = lambda sql: setattr(server, "available", 20 if "FOR UPDATE" in sql else 19)
    store = TaskStore(TABLE, adapter_of(server.engine.dialect))
    with server.engine.begin() as connection:
        assert len(store.claim(connection, "mail", 20, lease=60, by="me")) == 19
        server.available = 0
        server.sent.clear()
        server.refuse = lambda sql: setattr(server, "available", int("FOR UPDATE" in sql))
        assert store.claim(connection, "other", 5, lease=60, by="me") == []

    assert [sent.sql.partition(" ")[0] for sent in server.sent] == ["SELECT", "SELECT"], "nothing is left to change"
    assert "task.queue = :of_queue AND task.status = 'NEW'" in server.sent[1].sql


def test_a_pruning_batch_fetches_no_more_than_it_deletes() -> None:
    server = recorder("oracle")
    server.available = 100
    with server.engine.begin() as connection:
        TaskStore(TABLE, adapter_of(server.engine.dialect)).prune(connection, Status.COMPLETED, DAY, 7)
    assert server.fetched[server.sent[0].sql] == 7


@pytest.mark.parametrize("database", ["oracle", "mssql"])
def test_no_list_is_longer_than_the_server_takes(database: str) -> None:
    server = recorder(database)
    store = TaskStore(TABLE, adapter_of(server.engine.dialect))
    server.refuse = lambda sql: setattr(server, "available", int("FROM task" not in sql))  # the clock only
    ids = [new_id() for _ in range(2500)]
    with server.engine.begin() as connection:
        store.claim(connection, "mail", 2500, lease=60, by="me")
        store.renew(connection, [(task, 1) for task in ids], lease=60)
        store.give_back_unknown(connection, [(task, 1) for task in ids], delay=1, fail_after=9)
        store.settle(
            connection, [Settlement(task, 1, Status.COMPLETED, delete=n % 2 == 0) for n, task in enumerate(ids)]
        )
    mark = ":ids_" if database == "oracle" else "%(ids_"
    assert max(sent.sql.count(mark) for sent in server.sent) == 1000


def test_a_cursor_in_sqlalchemys_asyncio_wrapper_is_bound_too() -> None:
    class Inner:
        arraysize = prefetchrows = 0

    class Wrapper:
        __slots__ = ("_cursor",)

    wrapper = Wrapper()
    wrapper._cursor = Inner()  # type: ignore[attr-defined]
    adapter_for(oracle.dialect()).bound_fetch(wrapper, 5)  # type: ignore[no-untyped-call]
    assert (wrapper._cursor.arraysize, wrapper._cursor.prefetchrows) == (5, 5)  # type: ignore[attr-defined]


def test_an_index_of_the_users_own_is_left_as_it_is() -> None:
    own = Table("own", MetaData(), Column("a", Integer))
    index = Index("ix_own", own.c.a, postgresql_where=own.c.a == text("1"))
    assert str(CreateIndex(index).compile(dialect=oracle.dialect())) == "CREATE INDEX ix_own ON own (a)"  # type: ignore[no-untyped-call]
