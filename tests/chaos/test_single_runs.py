"""While nobody dies each task is run once; the mistakes by which a task runs twice unseen are caught by counting.

Without the second read 10 of 20,000 tasks ran twice where reservations are rows (2026-11-30). Here every worker waits
between finding tasks and reserving them, so that others end some of what it found.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from tests.chaos.run import SETTLING_SECONDS, ChaosRun
from tests.chaos.test_chaos import text
from tests.support import eventually

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.servers("postgresql", "mysql", "mariadb"),
]

TASKS = 200
WORKERS = 3


def run_all(
    engine: Engine, url: URL, folder: Path, *, until_caught: bool = False, **chosen: str
) -> tuple[int, set[str]]:
    """How many tasks were begun more than once, and the rules that the history breaks."""
    with ChaosRun(engine, text(url), folder, **chosen) as run:  # type: ignore[arg-type]
        run.produce(TASKS, seconds=0)
        for number in range(WORKERS):
            run.start(f"worker-{number}", lease=60.0)
        run.produce(TASKS, seconds=0)
        if until_caught:
            # How soon workers get into each other's way depends on what else the machine does.
            eventually(lambda: twice(run) or more_to_do(run), timeout=SETTLING_SECONDS, message="never caught")
        run.settle()
        run.stop_all()
        stored = sum(event.outcome == "ok" for event in run.enqueued)
        assert len(run.starts()) == stored
        return twice(run), run.report().broken_rules


def more_to_do(run: ChaosRun) -> bool:
    """Produce more when nothing is left; False, so that it is waited on."""
    if not run.open_tasks():
        run.produce(TASKS // 2, seconds=0)
    return False


def twice(run: ChaosRun) -> int:
    return sum(times > 1 for times in run.starts().values())


@pytest.mark.parametrize(
    ("strategy", "mutant"),
    [
        ("lease", ""),
        ("row-lock", ""),
        ("advisory-lock", "slow-advisory-lock"),
        ("reservation-table", "slow-reservation-table"),
    ],
)
def test_each_task_is_begun_once(engine: Engine, url: URL, tmp_path: Path, strategy: str, mutant: str) -> None:
    assert run_all(engine, url, tmp_path, reservation=strategy, mutant=mutant) == (0, set())


@pytest.mark.parametrize(
    ("strategy", "mutant"),
    [
        ("row-lock", "unlocked-row-lock"),
        ("advisory-lock", "blind-advisory-lock"),
        ("reservation-table", "blind-reservation-table"),
    ],
)
def test_the_count_catches_the_mistake(engine: Engine, url: URL, tmp_path: Path, strategy: str, mutant: str) -> None:
    begun_twice, broken = run_all(engine, url, tmp_path, until_caught=True, reservation=strategy, mutant=mutant)
    assert begun_twice > 0
    assert broken == set(), "the guarded end keeps the effects to one all the same"
