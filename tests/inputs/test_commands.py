"""Every command names what is wrong with the table in one sentence, without a traceback."""

from __future__ import annotations

import pytest
from sqlalchemy import URL, Engine, Table, text

from tests.cli.conftest import Shell

TARGET = "tests.inputs.models:producer"
COMMANDS = [
    ("status", TARGET),
    ("list", TARGET),
    ("check", TARGET),
    ("prune", TARGET),
    ("retry", TARGET, "--all"),
    ("cancel", TARGET, "--all"),
    ("worker", TARGET, "--drain"),
]


def failure(url: URL, *command: str) -> str:
    result = Shell().run(*command, "--url", url.render_as_string(hide_password=False))
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    return result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_missing_table_is_named(admin: Engine, jobs: Table, url: URL, command: tuple[str, ...]) -> None:
    jobs.drop(admin)
    assert "Error: The table inputs_job does not exist. Run your migrations" in failure(url, *command)


@pytest.mark.parametrize("command", ["check", "list", "worker"])
def test_a_missing_column_is_named(admin: Engine, jobs: Table, url: URL, command: str) -> None:
    with admin.begin() as connection:
        connection.execute(text(f"ALTER TABLE {jobs.name} DROP COLUMN max_attempts"))
    assert "Error: The table inputs_job has no column max_attempts" in failure(url, command, TARGET)
