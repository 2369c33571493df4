"""What is wrong with TARGET or the URL is said in one sentence, with exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

URL = "sqlite:///cli.db"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("cli_app", "must be module:attribute"),
        ("no_such_module:queue", "no_such_module cannot be imported"),
        ("no_such_module:queue", "go to its folder or set PYTHONPATH"),
        ("./cli_app.py:queue", "name a module as in an import, not a file"),
        ("cli_app:other", "cli_app:other is no TaskQueue; there is cli_app:queue"),
        ("cli_app:missing.part", "is no TaskQueue"),
    ],
)
def test_a_wrong_target_is_a_usage_error(app: Path, shell: Shell, target: str, message: str) -> None:
    result = shell.run("status", target, "--url", URL)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "the URL cannot be used"),
        ("nonsense", "write it as postgresql+psycopg://"),
        ("nosuchdialect://host/db", "the URL cannot be used"),
        ("oracle+nosuchdriver://host/db", "the URL cannot be used"),
    ],
)
def test_a_wrong_url_is_a_usage_error(app: Path, shell: Shell, url: str, message: str) -> None:
    result = shell.run("status", "cli_app:queue", "--url", url)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [("mysql+mysqldb://h/d", "MySQLdb", "mysql"), ("postgresql+psycopg://h/d", "psycopg", "postgresql")],
)
def test_a_missing_driver_is_named_with_the_extra_that_installs_it(
    app: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, url: str, driver: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    result = shell.run("status", "cli_app:queue", "--url", url)
    assert (result.exit_code, f'pip install "sa-taskqueue[{extra}]"' in result.stderr) == (2, True), result.stderr


def test_without_url_and_engine_both_ways_to_give_one_are_named(app: Path, shell: Shell) -> None:
    result = shell.run("status", "cli_app:queue")
    assert result.exit_code == 2
    assert "--url" in result.stderr
    assert "SA_TASKQUEUE_URL" in result.stderr


def test_an_error_inside_the_users_module_keeps_its_traceback(app: Path, shell: Shell) -> None:
    (app / "broken_app.py").write_text("raise RuntimeError('the user has to see where')", encoding="utf-8")
    with pytest.raises(RuntimeError, match="has to see where"):
        shell.run("status", "broken_app:queue", "--url", URL)


def test_the_url_comes_from_the_environment(app: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SA_TASKQUEUE_URL", "nonsense")
    assert "the URL cannot be used" in shell.run("status", "cli_app:queue").stderr


@pytest.mark.parametrize("url", [URL, "sqlite+aiosqlite:///cli.db"])
def test_a_missing_table_is_one_sentence_without_traceback(app: Path, shell: Shell, url: str) -> None:
    result = shell.run("check", "cli_app:queue", "--url", url)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: The table task does not exist.")
    assert "Traceback" not in result.output


def test_with_json_the_error_carries_its_code(app: Path, shell: Shell) -> None:
    result = shell.run("check", "cli_app:queue", "--url", URL, "--json")
    assert '"code": "schema_missing"' in result.stdout
