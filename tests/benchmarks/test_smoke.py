"""The benchmarks run to their end and print what they promise. Sizes are tiny, and no rate is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report import Result

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.timeout(300)


def run(tmp_path: Path, command: str, *arguments: str) -> list[dict[str, object]]:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    line = [sys.executable, "-m", "benchmarks", command, "--url", url, "--rounds", "1", "--json", *arguments]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [json.loads(printed) for printed in ended.stdout.splitlines()]


@pytest.mark.parametrize(
    ("command", "arguments", "results"),
    [
        ("floor", ["--tasks", "50", "--batches", "10"], 2),
        ("enqueue", ["--units", "5", "--many", "50"], 2),
        ("enqueue-from", ["--rows", "500"], 1),
        ("drain", ["--tasks", "200", "--batch", "20"], 2),
        ("latency", ["--tasks", "3"], 1),
        ("decay", ["--tasks", "50", "--scale", "0.0005", "--case", "due", "--case", "snapshot", "--case", "memory"], 3),
    ],
)
def test_every_result_has_rate_floor_and_ratio(
    tmp_path: Path, command: str, arguments: list[str], results: int
) -> None:
    printed = run(tmp_path, command, *arguments)
    assert len(printed) == results
    for result in printed:
        assert {"rate", "floor", "ratio", "rates", "floors", "verdict"} <= result.keys()


def test_strategies_end_with_one_line_about_each_that_the_database_carries(tmp_path: Path) -> None:
    [printed] = run(tmp_path, "strategies", "--tasks", "200")
    found: Any = printed["strategies"]
    assert found.keys() == {"lease"}
    assert found["lease"].keys() >= {"rate", "rates", "statements", "wal", "dead_rows", "locks", "insert"}
    assert printed["range_over_single"] > 0


def test_the_median_of_the_rounds_counts() -> None:
    result = Result("r", "tasks/s", rates=[1.0, 9.0, 5.0], floors=[10.0, 2.0, 10.0], aim=0.5)
    assert (result.rate, result.floor, result.ratio) == (5.0, 10.0, 0.5)
    assert result.verdict == "reached"


def test_a_missed_ratio_is_reported_as_missed() -> None:
    assert Result("r", "tasks/s", rates=[4.9], floors=[10.0], aim=0.5).verdict == "MISSED"


def test_the_ratio_of_a_delay_is_above_one_when_it_is_smaller() -> None:
    assert Result("r", "ms", rates=[4.0], floors=[6.0], aim=1.0, smaller_is_better=True).ratio == 1.5
