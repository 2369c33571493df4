"""The statements of `RowLock` on Oracle and SQL Server, against files held against the vendors' pages.

No test runs on these servers, and there is no switch that writes the files; see test_pinned.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, CrashNotes, RowLocks, Settlement
from tests.adapters import mssql_rules, oracle_rules
from tests.adapters.scenario import HELD, TABLE, TASK, adapter_of, recorder
from tests.adapters.test_golden import normal
from tests.models import Base

GOLDEN = Path(__file__).parent / "golden" / "row_lock"
SERVERS = {"oracle": "docs.oracle.com", "mssql": "learn.microsoft.com"}
ENDS = {
    "complete": Settlement(TASK, 1, Status.COMPLETED),
    "delete": Settlement(TASK, 1, Status.COMPLETED, delete=True),
    "try_again": Settlement(TASK, 1, Status.SCHEDULED, delay=5.0),
}
OPERATIONS = ["claim", *ENDS, "put_off", "take", "note"]


def send(operation: str, rows: RowLocks, notes: CrashNotes, connection: Connection) -> list[Claimed]:
    if operation in ENDS:
        rows.settle(connection, [ENDS[operation]])
    elif operation == "put_off":
        rows.put_off(connection, HELD, delay=5.0)
    elif operation == "take":
        rows.take(connection, HELD)
    else:
        claims = rows.lock(connection, "mail", 20)
        if operation == "note":
            notes.write(connection, claims, "me")
        return claims
    return []


def sent_for(server: str, operation: str) -> list[str]:
    recording = recorder(server)
    adapter = adapter_of(recording.engine.dialect)
    notes = CrashNotes(TABLE, Base.metadata.tables["task_crash_note"], adapter)
    with recording.engine.begin() as connection:
        send(operation, RowLocks(TABLE, adapter), notes, connection)
    return recording.statements()[-1:] if operation == "note" else recording.statements()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_statements_are_as_the_file_says(server: str, operation: str) -> None:
    text = (GOLDEN / server / f"{operation}.sql").read_text()
    assert text.startswith(f"-- https://{SERVERS[server]}/")
    written = re.sub(r"^--.*$", "", text, flags=re.MULTILINE).split(";")
    assert [normal(sql) for sql in sent_for(server, operation)] == [normal(sql) for sql in written]


@pytest.mark.parametrize("server", SERVERS)
def test_every_file_is_compared(server: str) -> None:
    assert {path.stem for path in (GOLDEN / server).glob("*.sql")} == {*OPERATIONS}


@pytest.mark.parametrize(("server", "rules"), [("oracle", oracle_rules), ("mssql", mssql_rules)])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_statement_breaks_a_rule_of_its_database(server: str, rules: Any, operation: str) -> None:
    assert {sql: broken for sql in sent_for(server, operation) if (broken := rules.broken_rules(sql))} == {}


def test_oracle_locks_no_more_rows_than_are_wanted() -> None:
    """Each row that leaves the server is locked to the end of the work."""
    server = recorder("oracle")
    server.available = 100
    with server.engine.begin() as connection:
        claims = RowLocks(TABLE, adapter_of(server.engine.dialect)).lock(connection, "mail", 1)
    cursor = server.sent[0]
    assert (cursor.arraysize, cursor.prefetchrows, server.fetched[cursor.sql]) == (1, 1, 1)
    assert (claims[0].attempt, claims[0].epoch) == (1, 1)


@pytest.mark.parametrize("server", SERVERS)
def test_both_carry_row_locks_beside_leases_and_nothing_else(server: str) -> None:
    assert adapter_of(recorder(server).engine.dialect).reservations == {"lease", "row-lock"}
