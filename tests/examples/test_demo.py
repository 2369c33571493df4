"""`sa-taskqueue demo` as a newcomer runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(300)
def test_the_demo_kills_a_worker_and_loses_nothing() -> None:
    command = [sys.executable, "-c", "from sa_taskqueue.cli import main; main()", "demo", "--orders", "60"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "worker-2 killed with SIGKILL while it held" in ended.stdout
    header, counts = ended.stdout.splitlines()[-3:-1]
    assert header.split() == ["enqueued", "completed", "lost", "effects", "twice"]
    assert counts.split() == ["60", "60", "0", "0"]
