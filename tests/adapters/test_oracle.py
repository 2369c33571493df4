"""Oracle without a server: what it forbids, and how many rows leave it."""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Index, Integer, MetaData, Table, select, text
from sqlalchemy.dialects import oracle
from sqlalchemy.schema import CreateIndex

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.ids import new_id
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement, TaskStore
from tests.adapters.oracle_rules import RULES, broken_rules
from tests.adapters.scenario import DAY, OPERATIONS, TABLE, adapter_of, recorder, sent_for


@pytest.mark.parametrize("operation", [*OPERATIONS, "ddl"])
def test_no_statement_breaks_a_rule_of_oracle(operation: str) -> None:
    assert {sql: broken for sql in sent_for("oracle", operation) if (broken := broken_rules(sql))} == {}


BREAKING = {
    "no row limit beside FOR UPDATE": "SELECT id FROM t ORDER BY id FETCH FIRST 5 ROWS ONLY FOR UPDATE SKIP LOCKED",
    "no ROWNUM beside FOR UPDATE": "SELECT id FROM t WHERE ROWNUM <= 5 FOR UPDATE SKIP LOCKED",
    "no DISTINCT beside FOR UPDATE": "SELECT DISTINCT id FROM t FOR UPDATE",
    "no GROUP BY beside FOR UPDATE": "SELECT id FROM t GROUP BY id FOR UPDATE",
    "no aggregate beside FOR UPDATE": "SELECT min(id) FROM t FOR UPDATE",
    "no FOR UPDATE in a subquery or a set operation": "SELECT id FROM (SELECT id FROM t FOR UPDATE) x",
    "no LIMIT": "SELECT id FROM t LIMIT 5",
    "no list of more than 1000": f"SELECT id FROM t WHERE id IN ({', '.join(map(str, range(1001)))})",
    "no comparison with the empty string": "SELECT id FROM t WHERE name = ''",
    "no joined tables in UPDATE": "UPDATE t SET a = 1 FROM u WHERE t.id = u.id",
    "no joined tables in DELETE": "DELETE FROM t USING u WHERE t.id = u.id",
    "no conflict clause": "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO NOTHING",
    "no RETURNING without INTO": "UPDATE t SET a = 1 RETURNING id",
    "no name over 128 bytes": f"SELECT {'x' * 129} FROM t",
    "no Boolean": "SELECT id FROM t WHERE done = TRUE",
    "no clock of the session's zone": "SELECT id FROM t WHERE due <= CURRENT_TIMESTAMP",
    "no index of all rows": "CREATE INDEX ix ON t (CASE WHEN status = 'NEW' THEN queue END, id)",
    "no AS before the alias of a table": "SELECT id FROM t AS x",
}


def test_each_rule_has_a_statement_that_breaks_it() -> None:
    assert set(BREAKING) == {*RULES, "no AS before the alias of a table"}


@pytest.mark.parametrize(("rule", "sql"), BREAKING.items(), ids=list(BREAKING))
def test_the_checker_finds_what_breaks_the_rule(rule: str, sql: str) -> None:
    assert broken_rules(sql) == [rule]


def test_the_checker_finds_what_sqlalchemy_makes_of_a_limit_beside_a_lock() -> None:
    """The reason for the claim's shape: this is what any `limit(n).with_for_update(skip_locked=True)` is on Oracle."""
    pick = select(TABLE.c.id).limit(5).with_for_update(skip_locked=True)
    compiled = str(pick.compile(dialect=oracle.dialect(), compile_kwargs={"literal_binds": True}))  # type: ignore[no-untyped-call]
    assert broken_rules(compiled) == ["no row limit beside FOR UPDATE"]


@pytest.mark.parametrize("wanted", [1, 20])
def test_no_more_rows_are_fetched_than_are_claimed(wanted: int) -> None:
    """Each row that leaves the server is locked: the driver must not bring any ahead, in either round trip."""
    server = recorder("oracle")
    server.available = 100
    store = TaskStore(TABLE, adapter_of(server.engine.dialect))
    with server.engine.begin() as connection:
        store.claim(connection, "mail", wanted, lease=60, by="me")

    cursor, change, read = server.sent
    assert (cursor.arraysize, cursor.prefetchrows) == (wanted, wanted)
    assert server.fetched[cursor.sql] == wanted
    assert change.sql.count(":ids_") == wanted
    assert (read.arraysize, read.prefetchrows) == (100, 2), "other statements fetch as ever"


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
