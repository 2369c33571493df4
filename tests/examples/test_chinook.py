"""The example as its users run it: in a process of its own, on each server, with a worker killed in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, inspect

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def run_example(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "examples/chinook/run.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


def tables(url: URL) -> set[str]:
    engine = create_engine(url)
    found = {name for name in inspect(engine).get_table_names() if name.startswith("chinook_")}
    engine.dispose()
    return found


@pytest.mark.chaos
def test_412_orders_are_worked_off_while_a_worker_is_killed(url: URL) -> None:
    ended = run_example("--url", url.render_as_string(hide_password=False), "--workers", "3", "--kill", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *_, last = ended.stdout.splitlines()
    assert json.loads(last) == {
        "orders": 412,
        "completed": 412,
        "lost": 0,
        "effects_twice": 0,
        "total": "2328.60",
    }
    assert "killed chinook-0 while it held" in ended.stdout
    assert tables(url) == set()


def test_tables_are_kept_when_asked_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    ended = run_example("--url", url, "--workers", "1", "--kill", "0", "--keep-tables")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "chinook_receipt" in tables(URL.create("sqlite", database=str(tmp_path / "shop.db")))


def test_somebody_must_be_left_to_do_the_work() -> None:
    ended = run_example("--url", "sqlite://", "--workers", "1", "--kill", "1")
    assert ended.returncode == 2
    assert "--kill must be smaller than --workers" in ended.stderr
