"""The vendors' rules, held against every statement that is pinned; and each rule against a statement that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select
from sqlalchemy.dialects import oracle

from tests.adapters import cockroachdb_rules, mssql_rules, oracle_rules
from tests.adapters.scenario import OPERATIONS, TABLE, sent_for

CHECKERS: dict[str, Callable[[str], list[str]]] = {
    "oracle": oracle_rules.broken_rules,
    "mssql": mssql_rules.broken_rules,
    "cockroachdb": cockroachdb_rules.broken_rules,
}
NAMES = {
    "oracle": {*oracle_rules.RULES.names(), oracle_rules.NO_TABLE_AS},
    "mssql": mssql_rules.NAMES,
    "cockroachdb": cockroachdb_rules.RULES.names(),
}
SKIPPING = "WITH (UPDLOCK, READPAST, READCOMMITTEDLOCK)"

BREAKING: dict[str, dict[str, str | list[str]]] = {
    "oracle": {
        "no row limit beside FOR UPDATE": "SELECT id FROM t ORDER BY id FETCH FIRST 5 ROWS ONLY FOR UPDATE SKIP LOCKED",
        "no ROWNUM beside FOR UPDATE": "SELECT id FROM t WHERE ROWNUM <= 5 FOR UPDATE SKIP LOCKED",
        "no DISTINCT beside FOR UPDATE": "SELECT DISTINCT id FROM t FOR UPDATE",
        "no GROUP BY beside FOR UPDATE": "SELECT id FROM t GROUP BY id FOR UPDATE",
        "no aggregate beside FOR UPDATE": [
            "SELECT min(id) FROM t FOR UPDATE",
            "SELECT rank() OVER (ORDER BY id) FROM t FOR UPDATE",
        ],
        "no subquery for a table beside FOR UPDATE": "SELECT id FROM (SELECT id FROM t WHERE a = 1) x FOR UPDATE",
        "no FOR UPDATE in a subquery or a set operation": [
            "SELECT id FROM (SELECT id FROM t FOR UPDATE) x",
            "SELECT id FROM t UNION ALL SELECT id FROM u FOR UPDATE",
            "UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t FOR UPDATE)",
        ],
        "no LIMIT": ["SELECT id FROM t LIMIT 5", "SELECT id FROM t LIMIT 5 OFFSET 2"],
        "no RELEASE SAVEPOINT": "RELEASE SAVEPOINT one",
        "no :: for CAST": "SELECT a::INTEGER FROM t",
        "no semicolon at the end": "SELECT a FROM t;",
        "no ON DUPLICATE KEY": "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 1",
        "no MATERIALIZED": "WITH x AS MATERIALIZED (SELECT id FROM t) SELECT id FROM x",
        "no list of more than 1000": f"SELECT id FROM t WHERE id IN ({', '.join(map(str, range(1001)))})",
        "no comparison with the empty string": [
            "SELECT id FROM t WHERE name = ''",
            "SELECT id FROM t WHERE '' <> name",
            "SELECT id FROM t WHERE name IN ('a', '')",
        ],
        "no joined tables in UPDATE": "UPDATE t SET a = 1 FROM u WHERE t.id = u.id",
        "no joined tables in DELETE": "DELETE FROM t USING u WHERE t.id = u.id",
        "no conflict clause": "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO NOTHING",
        "no second row of VALUES": "INSERT INTO t (id) VALUES (1), (2)",
        "no RETURNING without INTO": "UPDATE t SET a = 1 RETURNING id",
        "no name too long": f"SELECT {'x' * 129} FROM t",
        "no reserved word for a name": ["SELECT level FROM t", "CREATE TABLE t (comment VARCHAR2(9))"],
        "no Boolean": "SELECT id FROM t WHERE done = TRUE",
        "no condition as a value": ["SELECT a = b AS same FROM t", "UPDATE t SET late = (a < b)"],
        "no SELECT without FROM": "SELECT sys_extract_utc(SYSTIMESTAMP)",
        "no clock of the session's zone": [
            "SELECT id FROM t WHERE due <= CURRENT_TIMESTAMP",
            "SELECT id FROM t WHERE due <= LOCALTIMESTAMP",
            "SELECT id FROM t WHERE due <= SYSDATE",
        ],
        "no function that Oracle does not know": "SELECT id FROM t WHERE due <= clock_timestamp()",
        "no limit in the subquery of a change": "DELETE FROM t WHERE id IN (SELECT id FROM t FETCH FIRST 5 ROWS ONLY)",
        "no index of all rows": "CREATE INDEX ix ON t (CASE WHEN status = 'NEW' THEN queue END, id)",
        "no AS before the alias of a table": [
            "SELECT id FROM t AS x",
            "SELECT id FROM (SELECT id FROM t) AS x",
            "UPDATE t AS x SET a = 1",
            "SELECT x.id FROM t x JOIN s.u AS y ON x.id = y.id",
        ],
    },
    "mssql": {
        "no LIMIT": "SELECT id FROM t ORDER BY id LIMIT 5",
        "no FOR UPDATE": "SELECT id FROM t FOR UPDATE",
        "no SKIP LOCKED": "SELECT id FROM t SKIP LOCKED",
        "no RETURNING": "UPDATE t SET a = 1 RETURNING id",
        "no ON CONFLICT": "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO NOTHING",
        "no ON DUPLICATE KEY": "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 1",
        "no INTERVAL": "UPDATE t SET a = sysutcdatetime() + INTERVAL '1' SECOND",
        "no MERGE": "MERGE t USING u ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)",
        "no :: for CAST": "SELECT a::INT FROM t",
        "no || for +": "SELECT a || b FROM t",
        "no TRUE or FALSE": "SELECT id FROM t WHERE done = TRUE",
        "no RELEASE SAVEPOINT": "RELEASE one",
        "no SAVEPOINT": "SAVEPOINT one",
        "no dirty read": "SELECT id FROM t WITH (NOLOCK)",
        "no hints without WITH": "SELECT id FROM t (UPDLOCK)",
        "no hints without commas": "SELECT id FROM t WITH (UPDLOCK ROWLOCK)",
        "no FETCH without OFFSET": "SELECT id FROM t ORDER BY id FETCH FIRST 5 ROWS ONLY",
        "no READPAST without READCOMMITTEDLOCK": "SELECT id FROM t WITH (UPDLOCK, READPAST)",
        "no READPAST without UPDLOCK": "SELECT id FROM t WITH (READPAST, READCOMMITTEDLOCK)",
        "no READPAST beside SERIALIZABLE": "SELECT id FROM t WITH (UPDLOCK, HOLDLOCK, READPAST, READCOMMITTEDLOCK)",
        "no ORDER BY inside without TOP": "WITH x AS (SELECT id FROM t ORDER BY id) UPDATE x SET id = 1",
        "no TOP without ORDER BY": f"WITH x AS (SELECT TOP 5 id FROM t {SKIPPING}) UPDATE x SET id = 1",
        "no USING in DELETE": "DELETE FROM t USING u WHERE t.id = u.id",
        "no local time": [
            "SELECT id FROM t WHERE due <= getdate()",
            "SELECT id FROM t WHERE due <= sysdatetime()",
            "SELECT id FROM t WHERE due <= CURRENT_TIMESTAMP",
        ],
        "no filter but comparisons and IN": [
            "CREATE INDEX ix ON t (a) WHERE status = 'NEW' OR status = 'RUNNING'",
            "CREATE INDEX ix ON t (a) WHERE status LIKE 'N%'",
        ],
        "no unique index without a filter": "CREATE UNIQUE INDEX ux ON t (a)",
        "no name over 128 characters": f"SELECT {'x' * 129} FROM t",
        "no INDEX hint without the filter's condition": "SELECT a FROM t WITH (INDEX(ix_task_claim)) WHERE a = %(s)s",
        "no more than 2100 parameters": f"SELECT a FROM t WHERE a IN ({', '.join(f'%(i{n})s' for n in range(2101))})",
    },
    "cockroachdb": {
        "no SKIP LOCKED": "SELECT id FROM t FOR UPDATE SKIP LOCKED",
        "no advisory locks": "SELECT pg_try_advisory_xact_lock(1)",
        "no NOTIFY": ["SELECT pg_notify('a', 'b')", "NOTIFY a"],
        "no COPY": "COPY t (id) FROM STDIN",
        "no UNLOGGED": "ALTER TABLE t SET UNLOGGED",
        "no ctid": "SELECT ctid FROM t",
        "no MERGE": "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE",
        "no deferred constraint": "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) DEFERRABLE",
        "no pick whose condition is not said again": (
            "UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t WHERE status = 'NEW' ORDER BY id LIMIT 5) RETURNING id"
        ),
        "no pick without an order": (
            "UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t WHERE b = 2 LIMIT 5) AND status = 'NEW' RETURNING id"
        ),
        "no pick without RETURNING": (
            "UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t ORDER BY id LIMIT 5) AND status = 'NEW'"
        ),
        "no clock of the transaction's start": [
            "UPDATE t SET a = now()",
            "UPDATE t SET a = CURRENT_TIMESTAMP",
            "UPDATE t SET a = transaction_timestamp()",
        ],
        "no lock in a subquery": "UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t WHERE b = 1 FOR UPDATE)",
    },
}  # fmt: skip

BROKEN = [
    (server, rule, sql)
    for server, rules in BREAKING.items()
    for rule, statements in rules.items()
    for sql in ([statements] if isinstance(statements, str) else statements)
]


@pytest.mark.parametrize("operation", [*OPERATIONS, "ddl"])
@pytest.mark.parametrize("server", CHECKERS)
def test_no_statement_breaks_a_rule_of_its_database(server: str, operation: str) -> None:
    check = CHECKERS[server]
    assert {sql: broken for sql in sent_for(server, operation) if (broken := check(sql))} == {}


@pytest.mark.parametrize("operation", [*OPERATIONS, "ddl"])
def test_every_name_is_short_enough_for_oracle_with_compatible_below_12_2(operation: str) -> None:
    broken = (oracle_rules.broken_rules(sql, longest_name=30) for sql in sent_for("oracle", operation))
    assert not any(broken)


@pytest.mark.parametrize("server", CHECKERS)
def test_each_rule_has_a_statement_that_breaks_it(server: str) -> None:
    assert set(BREAKING[server]) == NAMES[server]


@pytest.mark.parametrize(("server", "rule", "sql"), BROKEN, ids=[f"{one[0]}: {one[2][:60]}" for one in BROKEN])
def test_the_checker_finds_what_breaks_the_rule(server: str, rule: str, sql: str) -> None:
    assert CHECKERS[server](sql) == [rule]


def test_a_name_of_31_bytes_is_too_long_only_where_30_are_allowed() -> None:
    sql = f"SELECT {'x' * 31} FROM t"
    assert oracle_rules.broken_rules(sql) == []
    assert oracle_rules.broken_rules(sql, longest_name=30) == ["no name too long"]


def test_the_checker_finds_what_sqlalchemy_makes_of_a_limit_beside_a_lock() -> None:
    """The reason for the claim's shape: this is what any `limit(n).with_for_update(skip_locked=True)` is on Oracle."""
    pick = select(TABLE.c.id).limit(5).with_for_update(skip_locked=True)
    compiled = str(pick.compile(dialect=oracle.dialect(), compile_kwargs={"literal_binds": True}))  # type: ignore[no-untyped-call]
    assert oracle_rules.broken_rules(compiled) == ["no row limit beside FOR UPDATE"]
