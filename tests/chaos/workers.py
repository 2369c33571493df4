"""The driver's side of a worker process: start it, freeze it, kill it, and know for certain that it held a task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sqlalchemy import Engine, select

from tests.chaos.models import ChaosTask
from tests.chaos.told import told
from tests.chaos.worker_process import CRASH_AT, Orders
from tests.support import eventually

ROOT = Path(__file__).resolve().parents[2]
Pair = tuple[str, int]


@dataclass
class WorkerProcess:
    """A running worker; its files are in ``folder``."""

    orders: Orders
    crash_at: str = ""
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "tests.chaos.worker_process", json.dumps(asdict(self.orders))]
        environment = {**os.environ, CRASH_AT: self.crash_at}
        self.log = Path(self.orders.file).with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def told(self, event: str) -> list[dict[str, object]]:
        return told(Path(self.orders.file), event)

    def ended(self) -> set[Pair]:
        """Task and epoch of every handler that ran to its end."""
        return {(str(line["task"]), int(str(line["epoch"]))) for line in self.told("ended")}

    def started(self) -> set[Pair]:
        return {(str(line["task"]), int(str(line["epoch"]))) for line in self.told("start")}

    def held(self, engine: Engine) -> set[Pair]:
        """Task and epoch of the rows it has reserved; read without a transaction, which on SQLite would wait."""
        mine = ChaosTask.reserved_by.startswith(self.orders.name, autoescape=True)
        statement = select(ChaosTask.id, ChaosTask.epoch).where(ChaosTask.status == "RUNNING", mine)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            return {(str(row.id), row.epoch) for row in connection.execute(statement)}

    def freeze_at_work(self, engine: Engine) -> set[Pair]:
        """SIGSTOP it while it holds a task whose handler has started and not ended; what it holds then."""

        def frozen() -> set[Pair]:
            assert self.process.poll() is None, self.log.read_text()
            if not (self.held(engine) & self.started()) - self.ended():
                return set()
            self.process.send_signal(signal.SIGSTOP)
            at_work = (self.held(engine) & self.started()) - self.ended()
            if not at_work or not can_write(engine):
                self.process.send_signal(signal.SIGCONT)
                return set()
            return at_work

        return eventually(frozen, message=f"{self.orders.name} was never seen at work")

    def kill_at_work(self, engine: Engine) -> set[Pair]:
        """SIGKILL it while it holds a task; what it left reserved."""

        def killed() -> set[Pair]:
            self.freeze_at_work(engine)
            self.process.kill()
            self.process.wait()
            return self.held(engine)

        left = killed()
        assert left, f"{self.orders.name} held nothing when it was dead"
        return left

    def frozen_in_work(self) -> set[Pair]:
        """SIGSTOP it if a handler has started and not ended, whether or not its row says so; what had started."""
        assert self.process.poll() is None, self.log.read_text()
        if not self.started() - self.ended():
            return set()
        self.process.send_signal(signal.SIGSTOP)
        in_work = self.started() - self.ended()
        if not in_work:
            self.process.send_signal(signal.SIGCONT)
        return in_work

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self, *, timeout: float = 60.0) -> int:
        """SIGTERM, and wait for the end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        return self.process.wait(timeout)

    def destroy(self) -> None:
        """End it whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def can_write(engine: Engine) -> bool:
    """Whether nobody holds SQLite's write lock: a process frozen with it would stop all others, not lose its lease."""
    if engine.dialect.name != "sqlite":
        return True
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 200")
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            connection.exec_driver_sql("ROLLBACK")
        except Exception as error:
            if "locked" not in str(error):
                raise
            return False
        finally:
            connection.exec_driver_sql("PRAGMA busy_timeout = 30000")
    return True
