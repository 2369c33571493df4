"""One chaos run: a producer, workers that come and go, and at the end the judgement over everything that happened."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession
from tests.chaos.history import TERMINAL, Event, Kind, Report, check
from tests.chaos.journal import install_journal, read_events, refusals
from tests.chaos.models import Base, ChaosEffect, ChaosOrder, ChaosTask, JournalEntry
from tests.chaos.worker_process import Orders, make_queue
from tests.chaos.workers import Pair, WorkerProcess
from tests.support import eventually

SETTLING_SECONDS = 150.0
MAX_ATTEMPTS, MAX_CRASHES = 20, 20
PORTION = 20
"""Tasks produced at a time while a worker is to be seen at work."""
SECONDS = 0.1
"""How long a handler works before it writes."""


class RolledBackOnPurpose(Exception):
    pass


@dataclass
class ChaosRun:
    """Tables of its own in ``engine``'s database, worker processes with ``url``, files in ``folder``."""

    engine: Engine
    url: str
    folder: Path
    use_async: bool = False
    reservation: str = "lease"
    count_crashes: bool = False
    mutant: str = ""
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
        """Start a worker; return when it claims: what is produced then is shared with those that run already."""
        file = str(self.folder / f"{name}.jsonl")
        chosen: dict[str, Any] = {
            "use_async": self.use_async,
            "reservation": self.reservation,
            "count_crashes": self.count_crashes,
            "mutant": self.mutant,
        }
        setup = Orders(self.url, name, file, **{**chosen, **orders})
        worker = self.workers[name] = WorkerProcess(setup, crash_at)
        eventually(lambda: worker.told("reached") or worker.process.poll() is not None)
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

    def freeze_in_work(self, worker: WorkerProcess) -> set[Pair]:
        """SIGSTOP it while one of its handlers runs. There is more to do until that is seen: others may be quicker."""

        def frozen() -> set[Pair]:
            if not self.open_tasks():
                self.produce(PORTION, seconds=SECONDS)
            return worker.frozen_in_work()

        return eventually(frozen, message=f"{worker.orders.name} was never seen at work")

    def kill_in_work(self, worker: WorkerProcess) -> set[Pair]:
        """SIGKILL it likewise."""
        pairs = self.freeze_in_work(worker)
        worker.destroy()
        return pairs

    def freeze_past_the_reservation(self, worker: WorkerProcess) -> set[Pair]:
        """As `freeze_past_the_lease`, where the row does not say who holds it.

        A reservation in a table expires, so that others end the tasks meanwhile. The server does not see that the
        holder of a lock sleeps: there the tasks stay as they are.
        """
        pairs = self.freeze_in_work(worker)
        tasks = {task for task, _ in pairs}
        if self.reservation == "reservation-table":
            eventually(lambda: tasks <= self.finished(), timeout=90, message="a frozen worker kept its tasks")
        else:
            woken_at = time.monotonic() + 1.5 * worker.orders.lease
            eventually(lambda: time.monotonic() > woken_at)
            assert not tasks & self.finished(), "others ended what a frozen worker had locked"
        worker.wake()
        eventually(lambda: pairs <= worker.ended(), message="the handlers of a frozen worker never ended")
        return pairs

    def finished(self) -> set[str]:
        """The tasks that have ended."""
        with self.engine.connect() as connection:
            return {
                str(task) for task in connection.scalars(select(ChaosTask.id).where(ChaosTask.status.in_(TERMINAL)))
            }

    def starts(self) -> Counter[str]:
        """How often a handler began each task."""
        return Counter(str(line["task"]) for worker in self.workers.values() for line in worker.told("start"))

    def effects(self) -> set[Pair]:
        """Task and epoch of each effect."""
        with self.engine.connect() as connection:
            found = connection.execute(select(ChaosEffect.task_id, ChaosEffect.epoch))
            return {(str(row.task_id), row.epoch) for row in found}

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
        # A claim that writes nothing shows the epoch as it is; the end raises it.
        raised = self.reservation in {"advisory-lock", "reservation-table"}
        events = read_events(self.engine, raised_at_end=raised)
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
