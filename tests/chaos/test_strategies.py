"""The chaos run for the strategies that leave the row alone until the end: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from tests.chaos.run import SECONDS, ChaosRun, counts_line
from tests.chaos.test_chaos import TURNS, text
from tests.support import eventually

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.servers("postgresql", "mysql", "mariadb"),
]

TASKS = 60 if os.environ.get("SA_TASKQUEUE_TEST_LONG") else 20
"""Tasks produced before each death."""
LEASE = 2.0

strategies = pytest.mark.parametrize("strategy", ["row-lock", "advisory-lock", "reservation-table"])


def run_chaos(run: ChaosRun, capsys: pytest.CaptureFixture[str]) -> None:
    killed_in_work = stopped_in_work = frozen_in_work = 0
    with run:
        run.start("steady", lease=LEASE)
        for turn in range(TURNS):
            victim = run.start(f"killed-{turn}", lease=LEASE)
            run.produce(TASKS, seconds=SECONDS)
            killed_in_work += bool(run.kill_in_work(victim))
            sleeper = run.start(f"frozen-{turn}", lease=LEASE)
            run.produce(TASKS, seconds=SECONDS)
            frozen = run.freeze_past_the_reservation(sleeper)
            frozen_in_work += bool(frozen)
            leaver = run.start(f"stopped-{turn}", lease=LEASE)
            run.produce(TASKS, seconds=SECONDS)
            run.produce(4, name="async_fail_once" if run.use_async else "fail_once")
            stopped_in_work += bool(run.freeze_in_work(leaver))
            assert leaver.stop() == 0, leaver.log.read_text()
            if run.reservation == "row-lock":
                # Its transaction stood all the while, so that nobody else could run the tasks.
                assert frozen <= run.effects()
        run.settle()
        run.stop_all()
        report = run.report()
    deaths = {"killed_in_work": killed_in_work, "frozen_in_work": frozen_in_work, "stopped_in_work": stopped_in_work}
    with capsys.disabled():
        print("\n" + counts_line(report, strategy=run.reservation, **deaths))
    assert report.violations == []
    assert set(deaths.values()) == {TURNS}
    assert report.counts["completed"] == report.counts["effect"] == sum(event.outcome == "ok" for event in run.enqueued)
    assert report.counts["deadlocks"] == 0


@strategies
def test_nothing_is_lost_or_done_twice_with_sync_handlers(
    engine: Engine, url: URL, tmp_path: Path, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_chaos(ChaosRun(engine, text(url), tmp_path, reservation=strategy), capsys)


@strategies
def test_nothing_is_lost_or_done_twice_with_async_handlers(
    engine: Engine, async_url: URL, tmp_path: Path, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("greenlet")
    run_chaos(ChaosRun(engine, text(async_url), tmp_path, use_async=True, reservation=strategy), capsys)


def test_the_checker_catches_ends_without_a_guard(engine: Engine, url: URL, tmp_path: Path) -> None:
    mutant = "unguarded-reservation-table"
    with ChaosRun(engine, text(url), tmp_path, reservation="reservation-table", mutant=mutant) as run:
        sleeper = run.start("frozen", lease=LEASE)
        run.produce(9, seconds=SECONDS * 5)
        pairs = run.freeze_in_work(sleeper)
        run.start("steady", lease=LEASE)
        eventually(lambda: {task for task, _ in pairs} <= run.finished(), timeout=90)
        sleeper.wake()
        eventually(lambda: pairs <= sleeper.ended())
        run.stop_all()
        report = run.report()
    assert "effect" in report.broken_rules
