"""Killing a process at a moment when it holds something for certain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from models import Task
from sqlalchemy import Engine, func, select


@dataclass(frozen=True)
class KilledHolding:
    """A process that is dead, and how much it left reserved."""

    name: str
    held: int


def tasks_held(engine: Engine, name: str) -> int:
    """How many tasks are reserved by the worker called ``name``."""
    reserved = Task.reserved_by.startswith(name, autoescape=True)
    count = select(func.count()).select_from(Task).where(Task.status == "RUNNING", reserved)
    # In a transaction the look would wait on SQLite for the write lock, which a frozen worker may hold.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        return connection.scalar(count) or 0


def wait_until_it_holds(engine: Engine, name: str, patience: float) -> None:
    """Return when the worker has tasks."""
    deadline = time.monotonic() + patience
    while tasks_held(engine, name) == 0:
        if time.monotonic() > deadline:
            sys.exit(f"{name} never held anything: nothing was killed")
        time.sleep(0.01)


def kill_while_it_holds(engine: Engine, worker: subprocess.Popen[bytes], name: str, patience: float) -> KilledHolding:
    """Kill the worker at a moment when it holds a task."""
    return kill_when_it_holds(worker, name, patience, lambda: tasks_held(engine, name))


def kill_when_it_holds(
    process: subprocess.Popen[bytes], name: str, patience: float, held: Callable[[], int]
) -> KilledHolding:
    """Freeze the process, look whether it holds something, and kill it if so; otherwise let it run on and try again.

    A frozen process can finish nothing, so what is seen reserved before the kill is what it leaves behind. A statement
    it had already sent may still be carried out: hence the pause before the look, and a second look at the end.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"{name} ended by itself with code {process.returncode}")
        if held() == 0:
            time.sleep(0.01)
            continue
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.1)
        if held() > 0:
            process.kill()
            process.wait()
            if left := held():
                return KilledHolding(name, left)
            sys.exit(f"{name} was killed, but the statement it had sent finished its last work: run again")
        os.kill(process.pid, signal.SIGCONT)
    sys.exit(f"{name} never held anything: nothing was killed")
