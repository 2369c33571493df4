"""The list of combinations is compared by hand-kept lines: fewer is a failure that names what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.combinations import targets
from tests.matrix.comparison import Expected, Matrix, compare
from tests.servers import PINNED, SERVERS

USUAL = [name for name in SERVERS if name not in PINNED]

REPORT: dict[str, Any] = {
    "found": [
        ["sqlite-pysqlite", "", {"passed": 40, "skipped": 1}],
        ["sqlite-pysqlite", "lease", {"passed": 50}],
        ["mysql-pymysql", "", {"passed": 40}],
        ["mysql-pymysql", "lease", {"passed": 50, "failed": 1}],
        ["mysql-pymysql", "row-lock", {"passed": 51}],
    ],
    "skipped": ["sqlite: has no row locks", "oracle: golden SQL only"],
}


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "expected.txt"
    lines = ["# comment", "sqlite-pysqlite-lease", "mysql-pymysql-lease", "mysql-pymysql-row-lock"]
    path.write_text("\n".join([*lines, "skipped sqlite: has no row locks"]))
    return path


def difference(report: dict[str, Any], listed: Path, *servers: str) -> str:
    return str(compare(Matrix.read(report), Expected.read(servers, listed), servers))


def test_what_ran_is_summed_up_by_combination() -> None:
    summary = Matrix.read(REPORT).summary()
    assert (summary["combinations"], summary["passed"], summary["failed"]) == (3, 2, 1)
    assert summary["failed_combinations"] == ["mysql-pymysql-lease"]
    assert summary["skipped"] == REPORT["skipped"]


def test_a_failed_test_of_a_database_fails_each_of_its_combinations() -> None:
    report = {"found": [["x-y", "", {"failed": 1}], ["x-y", "lease", {"passed": 9}]], "skipped": []}
    assert Matrix.read(report).failed == ["x-y-lease"]


def test_a_run_as_listed_has_no_difference(listed: Path) -> None:
    assert difference(REPORT, listed, "sqlite", "mysql") == ""
    assert difference(REPORT, listed, "sqlite") == ""


def test_fewer_combinations_are_named(listed: Path) -> None:
    fewer = {**REPORT, "found": REPORT["found"][:-1]}
    assert difference(fewer, listed, "sqlite", "mysql") == "missing: mysql-pymysql-row-lock"


def test_what_is_not_listed_is_to_be_added_also_a_new_reason_to_skip(listed: Path) -> None:
    more = {
        "found": [*REPORT["found"], ["mysql-asyncmy", "lease", {"passed": 1}]],
        "skipped": ["mysql: has no savepoints"],
    }
    said = difference(more, listed, "sqlite", "mysql")
    assert "not in expected.txt: mysql-asyncmy-lease. Add the line" in said
    assert "not in expected.txt: skipped mysql: has no savepoints. Add the line" in said


@pytest.mark.parametrize("server", USUAL)
def test_the_list_has_each_driver_of_each_server(server: str) -> None:
    """A driver whose combinations all went missing would else be missed only by the matrix itself."""
    listed = Expected.read([server]).combinations
    expected = {f"{target}-lease" for target in targets(server, every=True)}
    assert expected == {name for name in listed if name.endswith("-lease")}
    assert len(listed) == len(set(listed))
