"""One chaos run: a producer, workers that come and go, and at the end the judgement over everything that happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession
from tests.chaos.history import TERMINAL, Event, Kind, Report, check
from tests.chaos.journal import install_journal, read_events, refusals
from tests.chaos.models import Base, ChaosOrder, ChaosTask, JournalEntry
from tests.chaos.worker_process import Orders, make_queue
from tests.chaos.workers import Pair, WorkerProcess
from tests.support import eventually

SETTLING_SECONDS = 150.0
MAX_ATTEMPTS, MAX_CRASHES = 20, 20


class RolledBackOnPurpose(Exception):
    pass


@dataclass
class ChaosRun:
    """Tables of its own in ``engine``'s database, worker processes with ``url``, files in ``folder``."""

    engine: Engine
    url: str
    folder: Path
    use_async: bool = False
    fenced: bool = True
    reservation: str = "lease"
    workers: dict[str, WorkerProcess] = field(default_factory=dict)
    enqueued: list[Event] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)
    """Names of the workers that were stopped past their leases and lived on."""

    def __enter__(self) -> Self:
        Base.metadata.drop_all(self.engine)
        Base.metadata.create_all(self.engine)
        install_journal(self.engine)
        self.queue = make_queue()
        self._sessions = sessionmaker(self.engine, class_=TaskSession)
        return self

    def __exit__(self, *details: object) -> None:
        for worker in self.workers.values():
            worker.destroy()
        Base.metadata.drop_all(self.engine)

    def start(self, name: str, *, crash_at: str = "", **orders: Any) -> WorkerProcess:
        """Start a worker; return when it claims: what is produced then is shared with those that run already.

        A claim that holds the row lock until the end of the work has no fault point of its own; there it is up.
        """
        file = str(self.folder / f"{name}.jsonl")
        chosen = {"use_async": self.use_async, "fenced": self.fenced, "reservation": self.reservation}
        setup = Orders(self.url, name, file, **chosen, **orders)
        worker = self.workers[name] = WorkerProcess(setup, crash_at)
        claims = "up" if self.reservation == "row-lock" else "reached"
        eventually(lambda: worker.told(claims) or worker.process.poll() is not None)
        assert worker.told("up"), worker.log.read_text()
        return worker

    def produce(self, count: int, *, name: str | None = None, using: dict[str, Any] | None = None, **body: Any) -> str:
        """Enqueue ``count`` tasks in a unit of work each; every tenth is rolled back. The id of the last one."""
        task = self.queue.named(name or ("async_work" if self.use_async else "work")).using(**(using or {}))
        for number in range(count):
            outcome = "ok"
            try:
                with self._sessions.begin() as session:
                    row = session.enqueue(task, **body)
                    session.add(ChaosOrder(task_id=row.id))
                    task_id = str(row.id)
                    session.flush()
                    if number % 10 == 9:
                        raise RolledBackOnPurpose
            except RolledBackOnPurpose:
                outcome = "fail"
            self.enqueued.append(Event(Kind.ENQUEUE, task_id, outcome=outcome))
        return task_id

    def freeze_past_the_lease(self, worker: WorkerProcess) -> set[Pair]:
        """SIGSTOP it at work until others have taken its tasks over, then let it run on to its late finishes."""
        pairs = worker.freeze_at_work(self.engine)
        eventually(lambda: pairs <= self.taken_over(), timeout=90, message="a frozen worker kept its tasks")
        worker.wake()
        eventually(lambda: pairs <= worker.ended(), message="the handlers of a frozen worker never ended")
        self.frozen.append(worker.orders.name)
        return pairs

    def taken_over(self) -> set[Pair]:
        """Task and epoch of every lease that ended without its holder."""
        statement = select(JournalEntry.task_id, JournalEntry.old_epoch).where(JournalEntry.crashed > 0)
        with self.engine.connect() as connection:
            return {(str(row.task_id), row.old_epoch) for row in connection.execute(statement)}

    def settle(self) -> None:
        """Wait until no task is open."""
        eventually(lambda: not self.open_tasks(), timeout=SETTLING_SECONDS, message="tasks stayed open")

    def open_tasks(self) -> dict[str, int]:
        """How many tasks are in each status that is not terminal."""
        statement = select(ChaosTask.status, func.count()).group_by(ChaosTask.status)
        with self.engine.connect() as connection:
            found = {str(status): number for status, number in connection.execute(statement)}
        return {status: number for status, number in found.items() if status not in TERMINAL}

    def stop_all(self) -> None:
        for worker in self.workers.values():
            worker.stop()

    def report(self) -> Report:
        """The checker's word on the whole history; also that orders and tasks were stored together."""
        events = read_events(self.engine)
        ended = [pair for name in self.frozen for pair in self.workers[name].ended()]
        history = [*self.enqueued, *events, *refusals(events, ended)]
        report = check(history, max_attempts=MAX_ATTEMPTS, max_crashes=MAX_CRASHES)
        logs = (worker.log.read_text().lower() for worker in self.workers.values())
        report.counts["deadlocks"] = sum(log.count("deadlock") for log in logs)
        with self.engine.connect() as connection:
            orders = connection.scalar(select(func.count()).select_from(ChaosOrder))
        assert orders == sum(event.outcome == "ok" for event in self.enqueued)
        return report


def counts_line(report: Report, **more: object) -> str:
    """What a run prints."""
    names = ("enqueue", "stored", "claim", "completed", "failed", "effect", "crashed", "refused", "deadlocks")
    counts: Counter[str] = report.counts
    figures = {name: counts[name] for name in names} | more | {"violations": len(report.violations)}
    return "  ".join(f"{name}={value}" for name, value in figures.items())
