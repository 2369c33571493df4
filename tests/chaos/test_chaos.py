"""Workers are killed, frozen past their leases and told to stop; nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine

from tests.chaos.run import SECONDS, ChaosRun, counts_line
from tests.support import eventually

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

TURNS = 5 if os.environ.get("SA_TASKQUEUE_TEST_LONG") else 1
"""How often each kind of death is dealt out."""
TASKS = 60
"""Tasks produced before each death: enough that the workers are still at work when it comes."""


def text(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def run_chaos(engine: Engine, url: str, folder: Path, *, use_async: bool, capsys: Any) -> None:
    killed_holding = stopped_holding = 0
    with ChaosRun(engine, url, folder, use_async=use_async) as run:
        run.start("steady")
        for turn in range(TURNS):
            victim = run.start(f"killed-{turn}")
            run.produce(TASKS, seconds=SECONDS)
            killed_holding += bool(victim.kill_at_work(engine))
            sleeper = run.start(f"frozen-{turn}")
            run.produce(TASKS, seconds=SECONDS)
            run.freeze_past_the_lease(sleeper)
            leaver = run.start(f"stopped-{turn}")
            run.produce(TASKS, seconds=SECONDS)
            stopped_holding += bool(leaver.freeze_at_work(engine))
            assert leaver.stop() == 0, leaver.log.read_text()
            assert leaver.held(engine) == set()
        run.settle()
        run.stop_all()
        report = run.report()
    with capsys.disabled():
        print("\n" + counts_line(report, killed_holding=killed_holding, stopped_holding=stopped_holding))
    assert report.violations == []
    assert killed_holding == stopped_holding == TURNS
    assert report.counts["refused"] > 0
    assert report.counts["completed"] == report.counts["effect"] == sum(event.outcome == "ok" for event in run.enqueued)
    assert report.counts["deadlocks"] == 0


def test_nothing_is_lost_or_done_twice_with_sync_handlers(
    engine: Engine, url: URL, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_chaos(engine, text(url), tmp_path, use_async=False, capsys=capsys)


def test_nothing_is_lost_or_done_twice_with_async_handlers(
    engine: Engine, async_url: URL, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("greenlet")
    run_chaos(engine, text(async_url), tmp_path, use_async=True, capsys=capsys)


def test_the_checker_catches_a_worker_without_fencing(engine: Engine, url: URL, tmp_path: Path) -> None:
    """The mutation: finishes are not guarded by the epoch, and the worker never believes that it lost a lease."""
    with ChaosRun(engine, text(url), tmp_path, mutant="unguarded-lease") as run:
        sleeper = run.start("frozen")
        run.produce(9, seconds=SECONDS * 5)
        pairs = sleeper.freeze_at_work(engine)
        run.start("steady")
        tasks = {task for task, _ in pairs}
        eventually(lambda: tasks <= {task for task, _ in run.workers["steady"].ended()}, timeout=90)
        sleeper.wake()
        eventually(lambda: pairs <= sleeper.ended())
        run.settle()
        run.stop_all()
        report = run.report()
    assert "effect" in report.broken_rules
