"""Every statement that Oracle, SQL Server and CockroachDB are sent, against files held against the vendors' pages.

No test runs on these servers, so this is what holds the statements in place. There is no switch that writes the files:
whoever changes a statement reads the page named in the file first, and says in the file what it should be.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.adapters.scenario import OPERATIONS, SERVERS, sent_for
from tests.adapters.test_golden import normal

GOLDEN = Path(__file__).parent / "golden"
CASES = [(server, operation) for server in SERVERS for operation in (*OPERATIONS, "ddl")]


@pytest.mark.parametrize(("server", "operation"), CASES)
def test_the_statements_are_as_the_file_says(server: str, operation: str) -> None:
    text = (GOLDEN / server / f"{operation}.sql").read_text()
    written = re.sub(r"^--.*$", "", text, flags=re.MULTILINE).split(";")
    assert [normal(sql) for sql in sent_for(server, operation)] == [normal(sql) for sql in written]


@pytest.mark.parametrize("server", SERVERS)
def test_each_file_is_compared_and_begins_with_the_vendors_pages(server: str) -> None:
    """Address and title; the words behind them say what of the page the statement rests on."""
    files = {path.stem: path.read_text() for path in (GOLDEN / server).glob("*.sql")}
    assert set(files) == {*OPERATIONS, "ddl"}
    hosts = {"oracle": "docs.oracle.com", "mssql": "learn.microsoft.com", "cockroachdb": "www.cockroachlabs.com"}
    page = re.compile(rf'-- https://{re.escape(hosts[server])}/\S+ "[^"]+"(?: \(.+\))?')
    assert [name for name, text in files.items() if not page.fullmatch(text.splitlines()[0])] == []
    sources = (line for text in files.values() for line in text.splitlines() if line.startswith("-- http"))
    assert [line for line in sources if not page.fullmatch(line)] == []
