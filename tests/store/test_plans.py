"""The server reads what each statement means to take, in the order of its index: pinned by EXPLAIN on each database."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine.interfaces import DBAPICursor

from sa_taskqueue.states import Status
from tests.store.bench import Bench, pairs

FUTURE = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
EXPLAIN = {
    "postgresql": "EXPLAIN (FORMAT JSON) ",
    "mysql": "EXPLAIN FORMAT=JSON ",
    "mariadb": "EXPLAIN FORMAT=JSON ",
    "sqlite": "EXPLAIN QUERY PLAN ",
}


class Plans:
    """Explains every statement of an operation before it runs."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.texts: list[str] = []

    def of(self, operation: Any) -> str:
        """The plans of all statements that the operation runs, as one text."""
        event.listen(self._bench.engine, "before_cursor_execute", self._explain)
        try:
            with self._bench.transaction() as connection:
                operation(connection)
        finally:
            event.remove(self._bench.engine, "before_cursor_execute", self._explain)
        return "\n".join(self.texts)

    def _explain(
        self, connection: Connection, cursor: DBAPICursor, statement: str, parameters: Any, context: Any, many: bool
    ) -> None:
        if "task" in statement and "get_lock" not in statement and "release_lock" not in statement:
            name = self._bench.engine.dialect.name
            # MariaDB's plan shows ids as the bytes they are, which are no text in any character set.
            raw = name in {"mysql", "mariadb"}
            if raw:
                cursor.execute("SET character_set_results = binary")
            cursor.execute(EXPLAIN[name] + statement, parameters)
            self.texts.append(json.dumps(list(map(list, cursor.fetchall())), default=_text))
            if raw:
                cursor.execute("SET character_set_results = utf8mb4")


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@pytest.fixture
def filled(bench: Bench) -> Bench:
    """More rows than are taken, in every status and with other queues, and no statistics gathered since."""
    bench.add(400)
    bench.add(400, queue="reports")
    bench.add(400, status=Status.COMPLETED, finished_at=FUTURE)
    bench.add(400, status=Status.SCHEDULED, scheduled_at=FUTURE, priority=-7)
    bench.claim(200)
    return bench


def uses_index_without_sort(plan: str, index: str) -> bool:
    sorts = ("filesort", '"Sort"', "TEMP B-TREE", "Sort row IDs", "Sort:")
    return index in plan and not any(word in plan for word in sorts)


def test_a_claim_walks_the_claim_index_and_sorts_nothing(filled: Bench) -> None:
    plan = Plans(filled).of(lambda connection: filled.store.claim(connection, "mail", 5, lease=60, by="w"))

    assert uses_index_without_sort(plan, "ix_task_claim"), plan


@pytest.mark.servers("postgresql")
def test_a_claim_locks_no_more_under_any_other_plan(filled: Bench) -> None:
    with filled.transaction() as connection:
        for setting in ("enable_nestloop", "enable_indexscan", "enable_bitmapscan", "enable_hashjoin"):
            connection.exec_driver_sql(f"SET LOCAL {setting} = off")
        assert len(filled.store.claim(connection, "mail", 5, lease=60, by="w")) == 5


@pytest.mark.servers("postgresql")
def test_a_claim_from_positions_seeks_them_in_the_index(filled: Bench) -> None:
    memory = filled.store.claim_memory()
    assert memory is not None
    with filled.transaction() as connection:
        filled.store.claim(connection, "mail", 10, lease=60, by="w", memory=memory)

    plan = Plans(filled).of(
        lambda connection: filled.store.claim(connection, "mail", 5, lease=60, by="w", memory=memory)
    )

    assert uses_index_without_sort(plan, "ix_task_claim"), plan
    condition = next(part for part in plan.split("Index Cond") if "ix_task_claim" in plan and "ROW(" in part)
    assert "status" in condition


@pytest.mark.servers("postgresql")
def test_the_search_for_the_next_due_task_starts_behind_the_last_priority(bench: Bench) -> None:
    bench.add(5_000, status=Status.SCHEDULED, scheduled_at=FUTURE, priority=-7)
    with bench.transaction() as connection:
        connection.exec_driver_sql("ANALYZE task")

    plan = Plans(bench).of(bench.store.next_due)

    assert uses_index_without_sort(plan, "ix_task_promote"), plan
    # Without the status, which a partial index implies, the index would be read from its start.
    assert "ROW(status, priority)" in plan, plan


def test_a_promotion_walks_the_promotion_index_and_sorts_nothing(filled: Bench) -> None:
    filled.add(50, status=Status.SCHEDULED, scheduled_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))

    plan = Plans(filled).of(lambda connection: filled.store.promote(connection, 5))

    assert uses_index_without_sort(plan, "ix_task_promote"), plan


def test_a_take_over_walks_the_index_of_leases_and_sorts_nothing(filled: Bench) -> None:
    plan = Plans(filled).of(lambda connection: filled.store.take_over(connection, 5, max_crashes=3))

    assert uses_index_without_sort(plan, "ix_task_take_over"), plan


@pytest.mark.servers("mysql", "mariadb")
def test_a_renewal_locks_by_primary_key(filled: Bench) -> None:
    claimed = filled.claim(20)

    plan = Plans(filled).of(lambda connection: filled.store.renew(connection, pairs(claimed), lease=60))

    assert "PRIMARY" in plan
    assert "filesort" not in plan
