"""SQL Server without a server: what the drivers make of the values, and the hints of a claim."""

from __future__ import annotations

import datetime as dt
import importlib
from typing import Any

import pytest
from pymssql import _mssql
from sqlalchemy import Column, Index, Integer, MetaData, Table, create_engine, insert, select
from sqlalchemy.dialects.mssql import aioodbc, pymssql, pyodbc
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateTable

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.mssql import SQLServer
from sa_taskqueue.adapters.registry import adapter_for
from tests.adapters.recorder import Driver
from tests.adapters.scenario import TABLE

MOMENT = dt.datetime(2026, 12, 1, 13, 14, 15, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))
DIALECTS = {"pymssql": pymssql, "pyodbc": pyodbc, "aioodbc": aioodbc}


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Any:
    paramstyle = "pyformat" if request.param == "pymssql" else "qmark"
    return DIALECTS[request.param].dialect(dbapi=Driver(paramstyle))


def bound(statement: Any, dialect: Any) -> tuple[str, dict[str, Any]]:
    compiled = statement.compile(dialect=dialect)
    process = compiled._bind_processors
    return str(compiled), {
        name: process[name](value) if name in process and value is not None else value
        for name, value in compiled.params.items()
    }


def test_every_driver_gets_moments_to_the_microsecond(dialect: Any) -> None:
    """As UTC, in text that the server reads the same in every language."""
    sql, values = bound(select(TABLE.c.id).where(TABLE.c.finished_at >= MOMENT), dialect)
    assert "CAST(" in sql
    assert sql.endswith("AS DATETIME2(6))")
    assert values == {"finished_at_1": "2026-12-01T11:14:15.123456"}

    sql, values = bound(insert(TABLE).values(scheduled_at=MOMENT), dialect)
    assert "AS DATETIME2(6))" in sql
    assert values["scheduled_at"] == "2026-12-01T11:14:15.123456"


def test_pymssql_alone_would_cut_the_microseconds_off() -> None:
    """Why moments are text. It writes text as N'...', hence the NVARCHAR columns."""
    cut = _mssql.substitute_params("%(at)s", {"at": MOMENT.replace(tzinfo=None)})
    assert b"15.123'" in cut
    assert _mssql.substitute_params("%(name)s", {"name": "mail"}) == b"N'mail'"
    assert _mssql.substitute_params("%(at)s", {"at": "2026-12-01T11:14:15.123456"}).endswith(b"15.123456'")


def test_a_moment_of_the_server_is_read_as_utc(dialect: Any) -> None:
    read = TABLE.c.finished_at.type.dialect_impl(dialect).result_processor(dialect, None)
    assert read is not None
    assert read(MOMENT.astimezone(dt.UTC).replace(tzinfo=None)) == MOMENT
    assert read(None) is None


def test_names_are_nvarchar_and_words_of_the_library_varchar(dialect: Any) -> None:
    ddl = str(CreateTable(TABLE).compile(dialect=dialect))
    for part in ("queue NVARCHAR(64)", "name NVARCHAR(120)", "unique_key NVARCHAR(1024)", "status VARCHAR(9)"):
        assert part in ddl


def test_the_hint_names_an_index_only_where_its_filter_is_the_condition() -> None:
    adapter = SQLServer(pyodbc.dialect())  # type: ignore[no-untyped-call]
    pick = select(TABLE.c.id).order_by(TABLE.c.id)

    def hinted(index: str) -> str:
        return str(adapter.skip_locked(adapter.by_index(pick, TABLE, index)).compile(dialect=pyodbc.dialect()))  # type: ignore[no-untyped-call]

    assert "WITH (INDEX(ix_task_claim), UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)" in hinted("ix_task_claim")
    for other in ("ix_task_prune", "ix_absent"):
        assert "WITH (UPDLOCK, ROWLOCK, READPAST, READCOMMITTEDLOCK)" in hinted(other)


def test_an_index_that_users_made_of_their_own_is_not_named_in_a_hint() -> None:
    own = Table("own", MetaData(), Column("a", Integer))
    Index("ix_own", own.c.a, mssql_where=own.c.a == 1)
    pick = select(own.c.a)
    assert SQLServer(pyodbc.dialect()).by_index(pick, own, "ix_own") is pick  # type: ignore[no-untyped-call]


def test_pymssql_without_a_server_is_a_lost_connection() -> None:
    """Nobody listens there: FreeTDS's own number, from a real attempt."""
    importlib.import_module("pymssql")
    engine = create_engine("mssql+pymssql://sa:x@127.0.0.1:1/master", connect_args={"login_timeout": 60})
    with pytest.raises(DBAPIError) as raised:
        engine.connect()
    assert adapter_for(engine.dialect).classify(raised.value) is ErrorKind.DISCONNECT, raised.value
