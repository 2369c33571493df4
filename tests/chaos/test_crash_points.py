"""A worker kills itself at every fault point in turn; whatever it was doing, nothing is lost or done twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from sa_taskqueue.worker import faults
from tests.chaos.history import Report
from tests.chaos.run import ChaosRun, counts_line
from tests.chaos.test_chaos import text
from tests.chaos.workers import WorkerProcess
from tests.support import eventually

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]


def bring_about(run: ChaosRun, worker: WorkerProcess, point: str) -> None:
    """Give the worker what takes it to the point."""
    if point == "fail.before_commit":
        run.produce(2, name="fail_once")
    elif point == "promote.before_commit":
        run.produce(2, using={"run_after": timedelta(seconds=1)}, seconds=0)
    elif point in {"release.before_commit", "renew.before_send"}:
        task = run.produce(1, name="hang_once")
        eventually(lambda: task in {started for started, _ in worker.started()})
        if point == "release.before_commit":
            worker.process.terminate()
    else:
        run.produce(4, seconds=0.05)


POINTS = {
    "lease": faults.POINTS - faults.LOCKED_POINTS,
    # Leases that have ended are taken over by workers of every kind; here there are none.
    "row-lock": faults.POINTS - faults.BATCH_POINTS - {"take_over.before_commit"},
    "advisory-lock": faults.POINTS - faults.LOCKED_POINTS - {"take_over.before_commit"},
    "reservation-table": faults.POINTS - faults.LOCKED_POINTS - {"take_over.before_commit"},
}


def test_a_worker_may_die_at_every_point(
    engine: Engine, url: URL, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    die_at_every_point(ChaosRun(engine, text(url), tmp_path), capsys)


@pytest.mark.servers("postgresql", "mysql", "mariadb")
@pytest.mark.parametrize("strategy", [name for name in POINTS if name != "lease"])
def test_a_worker_may_die_at_every_point_of_a_strategy_that_notes_attempts(
    engine: Engine, url: URL, tmp_path: Path, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ChaosRun(engine, text(url), tmp_path, reservation=strategy, count_crashes=True)
    report = die_at_every_point(run, capsys)
    assert report.counts["crashed"] > 0


def die_at_every_point(chaos: ChaosRun, capsys: pytest.CaptureFixture[str]) -> Report:
    reached: dict[str, int] = {}
    with chaos as run:
        for point in sorted(POINTS[run.reservation]):
            worker = run.start(point.replace(".", "-"), crash_at=point, grace=0.2)
            bring_about(run, worker, point)
            eventually(lambda worker=worker: worker.process.poll() is not None, message=f"{point} was never reached")
            reached[point] = sum(line["point"] == point for line in worker.told("reached"))
            assert worker.process.returncode == -9, worker.log.read_text()
        run.start("last", grace=0.2)
        run.settle()
        run.stop_all()
        report = run.report()
    with capsys.disabled():
        print("\nreached: " + "  ".join(f"{point}={times}" for point, times in reached.items()))
        print(counts_line(report))
    assert report.violations == []
    assert min(reached.values()) > 0
    return report
