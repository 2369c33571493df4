"""The parent's side of a race: contenders start together, and their rate and CPU time are counted as one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Outcome:
    """What one or more processes did together."""

    rate: float
    """Tasks per second, from the first start to the last end."""
    done: int
    client_us: float
    """CPU microseconds of the clients per task."""
    server_us: float | None
    """CPU microseconds of the server per task; None where its process cannot be seen."""
    memory: dict[int, float]
    statements: int = 0
    """Sent by the clients, where they count them."""


def race(orders: Sequence[Order], server: ServerCPU) -> Outcome:
    """Start one process per order, let them go at one moment, and wait for all of them."""
    contenders = [_start(order) for order in orders]
    try:
        for contender in contenders:
            _read(contender, "ready")
        before = server.seconds()
        for contender in contenders:
            contender.stdin.write("go\n")
            contender.stdin.flush()
        finishes = [json.loads(_read(contender)) for contender in contenders]
        after = server.seconds()
    finally:
        for contender in contenders:
            contender.kill()
            contender.communicate()
    done = sum(finish["done"] for finish in finishes)
    if done == 0:
        raise SystemExit("nothing was drained: is the table filled?")
    seconds = max(finish["ended"] for finish in finishes) - min(finish["started"] for finish in finishes)
    server_us = None if before is None or after is None else (after - before) / done * 1e6
    memory = {int(at): size for at, size in finishes[0]["memory"].items()}
    client_us = sum(finish["cpu"] for finish in finishes) / done * 1e6
    statements = sum(finish["statements"] for finish in finishes)
    return Outcome(done / seconds, done, client_us, server_us, memory, statements)


def _start(order: Order) -> Any:
    command = [sys.executable, "-m", "benchmarks.contender", json.dumps(asdict(order))]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _read(contender: Any, expected: str | None = None) -> str:
    line: str = contender.stdout.readline().strip()
    if not line or (expected is not None and line != expected):
        raise SystemExit(f"a contender ended or spoke out of turn: {line!r}")
    return line
