"""CPU seconds of this process and of the database server, where the server runs on this machine."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from sqlalchemy import Engine, text

TICKS = os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class ServerCPU:
    """Reads the server's CPU time from ``/proc``; ``seconds()`` is None where there is no such process here."""

    def __init__(self, engine: Engine) -> None:
        self._root = _server_process(engine)

    def seconds(self) -> float | None:
        """Time of the server's main process, its living children and those it has reaped."""
        if self._root is None:
            return None
        total = 0.0
        for pid in (self._root, *_children(self._root)):
            fields = _stat(pid)
            if fields:
                total += sum(int(fields[position]) for position in (11, 12, 13, 14))
        return total / TICKS


def _server_process(engine: Engine) -> int | None:
    family = engine.dialect.name
    with engine.connect() as connection:
        if family == "postgresql":
            fields = _stat(connection.scalar(text("SELECT pg_backend_pid()")))
            return int(fields[1]) if fields else None
        if family in {"mysql", "mariadb"}:
            path = Path(connection.scalar(text("SELECT @@pid_file")))
            return int(path.read_text()) if path.is_file() else None
    return None


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields and int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the command's name; empty if the process is gone."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return content.rpartition(")")[2].split()


def resident_mebibytes() -> float:
    """Memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
