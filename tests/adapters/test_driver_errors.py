"""Errors of the servers that are not run, in the shape in which their drivers raise them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from sqlalchemy.dialects import mssql, oracle
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind, missing_column
from sa_taskqueue.adapters.registry import adapter_for
from tests.adapters.recorder import Driver
from tests.adapters.scenario import SERVERS, adapter_of

ORACLE = adapter_for(oracle.dialect())  # type: ignore[no-untyped-call]
SQL_SERVER = adapter_for(mssql.dialect())  # type: ignore[no-untyped-call]


class OracleDetails(SimpleNamespace):
    """What python-oracledb puts into its exceptions."""

    def __str__(self) -> str:
        return f"{self.full_code}: {self.message}"


def oracle_error(code: str, message: str = "") -> Exception:
    return Driver.DatabaseError(OracleDetails(full_code=code, message=message))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ORA-00060", ErrorKind.DEADLOCK),
        ("ORA-08177", ErrorKind.SERIALIZATION),
        ("ORA-01555", ErrorKind.SERIALIZATION),
        ("ORA-00054", ErrorKind.LOCK_TIMEOUT),
        ("ORA-30006", ErrorKind.LOCK_TIMEOUT),
        ("ORA-00001", ErrorKind.UNIQUE),
        ("ORA-00942", ErrorKind.MISSING_TABLE),
        ("ORA-00904", ErrorKind.MISSING_COLUMN),
        ("ORA-16000", ErrorKind.READ_ONLY),
        ("ORA-01031", ErrorKind.NO_PRIVILEGE),
        ("ORA-01653", ErrorKind.DISK_FULL),
        ("ORA-03113", ErrorKind.DISCONNECT),
        ("ORA-03114", ErrorKind.DISCONNECT),
        ("ORA-12541", ErrorKind.DISCONNECT),
        ("DPY-4011", ErrorKind.DISCONNECT),
        ("ORA-02291", ErrorKind.OTHER),
    ],
)
def test_oracle(code: str, kind: ErrorKind) -> None:
    error = oracle_error(code, "as the server says it")
    assert ORACLE.classify(error) is kind
    assert ORACLE.classify(DBAPIError("SELECT 1", None, error)) is kind
    assert ORACLE.classify(Driver.DatabaseError(f"{code}: without details")) is kind


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (1205, ErrorKind.DEADLOCK),
        (3960, ErrorKind.SERIALIZATION),
        (1222, ErrorKind.LOCK_TIMEOUT),
        (2601, ErrorKind.UNIQUE),
        (2627, ErrorKind.UNIQUE),
        (208, ErrorKind.MISSING_TABLE),
        (207, ErrorKind.MISSING_COLUMN),
        (3906, ErrorKind.READ_ONLY),
        (229, ErrorKind.NO_PRIVILEGE),
        (1105, ErrorKind.DISK_FULL),
        (10054, ErrorKind.DISCONNECT),
        (547, ErrorKind.OTHER),
    ],
)
def test_sql_server_through_pymssql_and_pyodbc(number: int, kind: ErrorKind) -> None:
    assert SQL_SERVER.classify(Driver.OperationalError(number, b"as the server says it")) is kind
    message = (
        f"[23000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]As it says (7). ({number}) (SQLExecDirectW)"
    )
    assert SQL_SERVER.classify(Driver.OperationalError("23000", message)) is kind


def test_a_lost_odbc_connection_is_known_by_its_sqlstate() -> None:
    error = Driver.OperationalError("08S01", "[08S01] [Microsoft] Communication link failure (0) (SQLExecDirectW)")
    assert SQL_SERVER.classify(error) is ErrorKind.DISCONNECT


def test_cockroachdb_asks_for_another_try_with_40001() -> None:
    class RestartTransaction(Driver.OperationalError):
        sqlstate = "40001"

    kind = adapter_of(SERVERS["cockroachdb"]()).classify(RestartTransaction("restart transaction"))
    assert kind is ErrorKind.SERIALIZATION
    assert kind.retryable


@pytest.mark.parametrize(
    "error",
    [
        oracle_error("ORA-00904", '"TASK"."ABSENT": invalid identifier'),
        Driver.DatabaseError(207, b"Invalid column name 'absent'."),
    ],
    ids=["oracle", "mssql"],
)
def test_the_missing_column_is_named(error: Exception) -> None:
    assert missing_column(error).lower() == "absent"
