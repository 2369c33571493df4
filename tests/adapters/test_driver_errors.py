"""Errors of the servers that are not run, in the shape in which their drivers raise them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from oracledb import errors as oracledb_errors
from sqlalchemy import create_engine
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
        ("ORA-02049", ErrorKind.LOCK_TIMEOUT),
        ("ORA-12081", ErrorKind.READ_ONLY),
        ("ORA-12516", ErrorKind.DISCONNECT),
        ("DPY-1001", ErrorKind.DISCONNECT),
        ("DPY-4011", ErrorKind.DISCONNECT),
        ("DPY-4024", ErrorKind.LOCK_TIMEOUT),
        ("DPY-4033", ErrorKind.DISCONNECT),
        ("DPY-6000", ErrorKind.DISCONNECT),
        ("DPY-6001", ErrorKind.DISCONNECT),
        ("DPY-6005", ErrorKind.DISCONNECT),
        ("DPI-1080", ErrorKind.DISCONNECT),
        ("ORA-02291", ErrorKind.OTHER),
    ],
)
def test_oracle(code: str, kind: ErrorKind) -> None:
    error = oracle_error(code, "as the server says it")
    assert ORACLE.classify(error) is kind
    assert ORACLE.classify(DBAPIError("SELECT 1", None, error)) is kind
    assert ORACLE.classify(Driver.DatabaseError(f"{code}: without details")) is kind


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (60, "ORA-00060: deadlock detected while waiting for resource", ErrorKind.DEADLOCK),
        (1, "ORA-00001: unique constraint (APP.UQ_TASK_UNIQUE_HASH) violated", ErrorKind.UNIQUE),
        (8177, "ORA-08177: can't serialize access for this transaction", ErrorKind.SERIALIZATION),
        (54, "ORA-00054: resource busy and acquire with NOWAIT specified", ErrorKind.LOCK_TIMEOUT),
        (30006, "ORA-30006: resource busy; acquire with WAIT timeout expired", ErrorKind.LOCK_TIMEOUT),
        (3113, "ORA-03113: end-of-file on communication channel", ErrorKind.DISCONNECT),
        (3114, "ORA-03114: not connected to ORACLE", ErrorKind.DISCONNECT),
        (12541, "ORA-12541: TNS:no listener", ErrorKind.DISCONNECT),
        (28, "ORA-00028: your session has been killed", ErrorKind.DISCONNECT),
    ],
)
def test_oracle_through_the_error_objects_of_python_oracledb(code: int, said: str, kind: ErrorKind) -> None:
    """The driver makes DPY-4011 of what has ended a connection, and shows that in the place of the server's code."""
    details = oracledb_errors._Error(said, code=code)
    assert ORACLE.classify(Driver.DatabaseError(details)) is kind


def test_oracle_through_python_oracledb_without_a_server() -> None:
    """Nobody listens there: the driver's own DPY-6005, from a real attempt."""
    engine = create_engine(
        "oracle+oracledb://u:p@127.0.0.1:1/?service_name=x", connect_args={"tcp_connect_timeout": 60}
    )
    with pytest.raises(DBAPIError) as raised:
        engine.connect()
    assert ORACLE.classify(raised.value) is ErrorKind.DISCONNECT


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
        (1101, ErrorKind.DISK_FULL),
        (10054, ErrorKind.DISCONNECT),
        (40613, ErrorKind.DISCONNECT),
        (547, ErrorKind.OTHER),
    ],
)
def test_sql_server_through_pymssql_and_pyodbc(number: int, kind: ErrorKind) -> None:
    assert SQL_SERVER.classify(Driver.OperationalError(number, b"as the server says it")) is kind
    message = (
        f"[23000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]As it says (7). ({number}) (SQLExecDirectW)"
    )
    assert SQL_SERVER.classify(Driver.OperationalError("23000", message)) is kind


@pytest.mark.parametrize("number", [20003, 20004, 20006, 20009, 20017, 20047])
def test_freetds_which_is_under_pymssql_has_numbers_of_its_own(number: int) -> None:
    assert SQL_SERVER.classify(Driver.OperationalError(number, b"DB-Lib error message")) is ErrorKind.DISCONNECT


def test_of_several_messages_of_odbc_the_first_counts() -> None:
    says = "[23000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"
    message = f"{says}Violation of PRIMARY KEY (2627) (SQLExecDirectW); {says}The statement has been terminated. (3621)"
    assert SQL_SERVER.classify(Driver.IntegrityError("23000", message)) is ErrorKind.UNIQUE


@pytest.mark.parametrize("state", ["08S01", "08001", "08003", "IMC06"])
def test_a_lost_odbc_connection_is_known_by_its_sqlstate(state: str) -> None:
    error = Driver.OperationalError(state, f"[{state}] [Microsoft] Communication link failure (0) (SQLExecDirectW)")
    assert SQL_SERVER.classify(error) is ErrorKind.DISCONNECT


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("40001", ErrorKind.SERIALIZATION),
        ("40003", ErrorKind.DISCONNECT),
        ("23505", ErrorKind.UNIQUE),
        ("57P01", ErrorKind.DISCONNECT),
    ],
)
def test_cockroachdb_asks_for_another_try_with_40001(state: str, kind: ErrorKind) -> None:
    class Said(Driver.OperationalError):
        sqlstate = state

    assert adapter_of(SERVERS["cockroachdb"]()).classify(Said("restart transaction")) is kind
    assert ErrorKind.SERIALIZATION.retryable


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
