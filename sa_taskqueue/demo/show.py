"""Runs the show: fills the shop's queue, starts workers, kills one of them midway and counts what came out."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue.demo.shop import Base, Order, Receipt, Task, open_shop, send_receipt
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import TERMINAL, Status

PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.02
TELL_SECONDS = 0.1
SETTLE_SECONDS = 0.05
"""How long a frozen worker's last statement is given to arrive before the tasks it holds are counted."""


class DemoFailed(Exception):
    """The show could not be played to its end."""


@dataclass(frozen=True)
class Progress:
    """A moment of the show; ``note`` says what has just happened."""

    enqueued: int
    completed: int
    running: int
    workers: int
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came out; ``held_by_killed`` is the number of tasks the killed worker had in hand."""

    enqueued: int
    completed: int
    lost: int
    effects_twice: int
    held_by_killed: int
    seconds: float


Watcher = Callable[[Progress], None]


class Show:
    """One run in ``folder``; ``watch`` is called several times a second."""

    def __init__(self, folder: Path, *, orders: int, watch: Watcher) -> None:
        self._file = folder / "shop.db"
        self._orders = orders
        self._watch = watch
        self._engine = open_shop(self._file)
        self._session_factory = sessionmaker(self._engine, class_=TaskSession)
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._taken = 0
        self._told = 0.0
        self._deadline = time.monotonic() + PATIENCE_SECONDS

    def play(self) -> Outcome:
        """From the first order to the closing count."""
        started = time.monotonic()
        Base.metadata.create_all(self._engine)
        with self._started_workers("worker-1", "worker-2"):
            for _ in range(self._orders // 2):
                self._take_order()
            held = self._kill_midway("worker-2")
            while self._taken < self._orders:
                self._take_order()
            while self._open():
                self._check_patience("the tasks were not worked off")
                self._tell()
                time.sleep(LOOK_SECONDS)
            self._tell("all orders are worked off")
        outcome = self._count(held, started)
        self._engine.dispose()
        return outcome

    @contextlib.contextmanager
    def _started_workers(self, *names: str) -> Iterator[None]:
        try:
            for name in names:
                command = [sys.executable, "-m", "sa_taskqueue.demo.worker", str(self._file), name]
                self._workers[name] = subprocess.Popen(command)  # noqa: S603  our own module, no shell
            yield
        finally:
            for process in self._workers.values():
                process.terminate()
            for process in self._workers.values():
                process.wait()

    def _take_order(self) -> None:
        """Complete one order in a unit of work, which also stores its task."""
        self._taken += 1
        with self._session_factory.begin() as session:
            session.add(Order(id=self._taken, status="complete"))
            session.enqueue(send_receipt, self._taken)
        self._tell()

    def _kill_midway(self, name: str) -> int:
        """SIGKILL the worker when a quarter of the work is done and it holds a task; how many it held.

        Orders come in meanwhile, so that there is work for it however fast the other one is.
        """
        worker = self._workers[name]
        while True:
            self._check_patience(f"{name} never held a task")
            if worker.poll() is not None:
                raise DemoFailed(f"{name} ended by itself with code {worker.returncode}")
            if self._completed() >= self._orders // 4 and self._held(name):
                worker.send_signal(signal.SIGSTOP)  # a frozen process finishes nothing: what it holds can be counted
                time.sleep(SETTLE_SECONDS)
                held = self._held(name)
                worker.send_signal(signal.SIGKILL if held else signal.SIGCONT)
                if held:
                    worker.wait()
                    self._tell(f"{name} killed with SIGKILL while it held {held} task(s)")
                    return held
            elif self._taken < self._orders:
                self._take_order()
            self._tell()
            time.sleep(LOOK_SECONDS)

    def _check_patience(self, complaint: str) -> None:
        if time.monotonic() > self._deadline:
            raise DemoFailed(f"{complaint} within {PATIENCE_SECONDS:.0f} seconds")

    def _tell(self, note: str = "") -> None:
        """Report the progress, at most every `TELL_SECONDS` unless there is something to say."""
        now = time.monotonic()
        if not note and now - self._told < TELL_SECONDS:
            return
        self._told = now
        alive = sum(process.poll() is None for process in self._workers.values())
        running = self._number(Task, Task.status == Status.RUNNING)
        self._watch(Progress(self._number(Task), self._completed(), running, alive, note))

    def _count(self, held: int, started: float) -> Outcome:
        with _looking(self._engine) as session:
            receipts = session.scalars(select(Receipt.order_id)).all()
        return Outcome(
            enqueued=self._number(Task),
            completed=self._completed(),
            lost=self._orders - len(set(receipts)),
            effects_twice=len(receipts) - len(set(receipts)),
            held_by_killed=held,
            seconds=time.monotonic() - started,
        )

    def _completed(self) -> int:
        return self._number(Task, Task.status == Status.COMPLETED)

    def _open(self) -> int:
        return self._number(Task, Task.status.not_in(TERMINAL))

    def _held(self, name: str) -> int:
        return self._number(Task, (Task.status == Status.RUNNING) & (Task.reserved_by == name))

    def _number(self, model: type[Base], *criteria: ColumnElement[bool]) -> int:
        with _looking(self._engine) as session:
            return session.scalar(select(func.count()).select_from(model).where(*criteria)) or 0


def _looking(engine: Engine) -> Session:
    """A session that only reads, outside a transaction: that would wait for the lock a frozen worker may hold."""
    return Session(engine.execution_options(isolation_level="AUTOCOMMIT"))
