"""The example of the outbox as users run it: relays and the broker are killed, each message is applied once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("redis")
pytest.importorskip("sa_taskqueue.publishers.redis")

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(600)]


def test_2240_messages_are_applied_once_while_relays_and_the_broker_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "examples/chinook/outbox.py", "--url", f"sqlite:///{tmp_path / 'shop.db'}"]
    command += ["--to", "redis://", "--relays", "3", "--kill", "2", "--restart-broker"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500, check=False)
    if "is installed" in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *_, last = ended.stdout.splitlines()
    summary = json.loads(last)
    assert summary.pop("published") >= 2240
    assert summary == {"missing": 0, "order_violations": 0, "applied": 2240, "total": "2328.60"}
    assert "killed chinook-relay-1 while it held" in ended.stdout
    assert "was killed" in ended.stdout
