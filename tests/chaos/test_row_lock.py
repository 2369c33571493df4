"""Workers that hold tasks by row locks are killed and told to stop; nothing is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from tests.chaos.run import ChaosRun, counts_line
from tests.chaos.test_chaos import SECONDS, TASKS, TURNS, text

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.servers("postgresql"),
]


def test_nothing_is_lost_or_done_twice_with_row_locks(
    engine: Engine, url: URL, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed_in_work = 0
    with ChaosRun(engine, text(url), tmp_path, reservation="row-lock") as run:
        run.start("steady")
        for turn in range(TURNS):
            victim = run.start(f"killed-{turn}")
            run.produce(TASKS, seconds=SECONDS)
            killed_in_work += bool(victim.kill_in_work())
            leaver = run.start(f"stopped-{turn}")
            run.produce(TASKS, seconds=SECONDS)
            run.produce(4, name="fail_once")
            assert leaver.stop() == 0, leaver.log.read_text()
        run.settle()
        run.stop_all()
        report = run.report()
    with capsys.disabled():
        print("\n" + counts_line(report, killed_in_work=killed_in_work))
    assert report.violations == []
    assert killed_in_work == TURNS
    assert report.counts["completed"] == report.counts["effect"] == sum(event.outcome == "ok" for event in run.enqueued)
    assert report.counts["deadlocks"] == 0
