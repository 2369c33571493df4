"""What the adapter guide tells a third party to write is a conformance suite that runs, and that can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.checks.source import ROOT
from tests.docs.pages import DOCS, snippets

GUIDE = DOCS / "how-to" / "adapters.md"
THEIRS = 'Database("exampledb+driver://user:secret@localhost/test")'


def written(folder: Path) -> None:
    """The files of the page, on SQLite instead."""
    for snippet in snippets(GUIDE, "python"):
        first, _, text = snippet.text.partition("\n")
        if first in ("# conftest.py", "# test_conformance.py"):
            ours = f'Database("sqlite:///{folder}/suite.db", create=sqlite_engine)'
            text = text.replace(THEIRS, ours).replace(
                "import Database\n", "import Database\nfrom sa_taskqueue import sqlite_engine\n"
            )
            (folder / first[2:]).write_text(text)


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:valkey", *more, str(folder)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)}
    )


def test_the_files_of_the_guide_run_the_suite(tmp_path: Path) -> None:
    written(tmp_path)
    done = run(tmp_path, "-k", "claim or savepoint or at_once", "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sqlite does not carry row-lock" in done.stdout
    assert "sqlite has no row locks" in done.stdout


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ("priority", "test_the_smaller_priority_goes_first"),
        ("fence", "test_an_end_under_an_old_epoch_is_refused"),
    ],
)
def test_an_adapter_that_breaks_a_promise_fails_the_test_of_that_rule(tmp_path: Path, broken: str, rule: str) -> None:
    written(tmp_path)
    with (tmp_path / "conftest.py").open("a") as conftest:
        conftest.write(BROKEN[broken])
    done = run(tmp_path, "-k", rule)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED test_conformance.py::{rule}" in done.stdout


BROKEN = {
    "priority": """
from sa_taskqueue.adapters.sqlite import SQLite
take = SQLite.take
def upside_down(self, table, pick, *rest):
    return take(self, table, pick.order_by(None).order_by(table.c.priority.desc()), *rest)
SQLite.take = upside_down
""",
    "fence": """
from sa_taskqueue.store import settle
change_held = settle.change_held
settle.change_held = lambda connection, shape, held, *rest, **more: change_held(
    connection, shape, [(task, 1) for task, _ in held], *rest, **more)
""",
}
