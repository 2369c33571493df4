"""``latency``: from the call of enqueue to the start of the handler, with an idle worker and a steady trickle.

Twice on PostgreSQL: the call alone (PGQueuer sends one INSERT on an open connection, the library commits a session),
and in a unit of work, where both commit a business row with it through an AsyncSession on asyncpg.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import sessionmaker

from benchmarks.race import ROOT
from benchmarks.report import Result
from benchmarks.tables import fresh_tables
from sa_taskqueue import TaskSession

GAP_SECONDS = 0.05
"""20 tasks per second, as the peers were measured."""
WARM_UP = 10
"""The first tasks pay for connections and compiled statements on both sides and are not counted."""


Send = Callable[[], None]


def latency(engine: Engine, url: str, *, rounds: int, tasks: int) -> list[Result]:
    """The median delays in milliseconds; PGQueuer's in alternating rounds where it is installed."""
    with_peer = engine.dialect.name == "postgresql" and importlib.util.find_spec("pgqueuer") is not None
    units = [False, True] if with_peer else [False]
    return [_compare(engine, url, rounds, tasks, in_unit=in_unit, with_peer=with_peer) for in_unit in units]


def _compare(engine: Engine, url: str, rounds: int, tasks: int, *, in_unit: bool, with_peer: bool) -> Result:
    product: list[list[float]] = []
    peer: list[list[float]] = []
    with fresh_tables(engine):
        for _ in range(rounds):
            with _own_sender(engine, in_unit=in_unit) as send:
                product.append(_measure("benchmarks.listeners.product", url, send, tasks))
            if with_peer:
                peer.append(_peer_round(engine, tasks, in_unit=in_unit))
    details: dict[str, object] = {"p99 ms, product": [round(_quantile(delays, 0.99), 1) for delays in product]}
    if with_peer:
        details["p99 ms, PGQueuer"] = [round(_quantile(delays, 0.99), 1) for delays in peer]
    else:
        details["PGQueuer"] = "not compared: it is not installed, or this is not PostgreSQL"
    rates = [_quantile(delays, 0.5) for delays in product]
    floors = [_quantile(delays, 0.5) for delays in peer]
    name = f"{'unit of work' if in_unit else 'enqueue'} to start, p50 (floor: PGQueuer)"
    return Result(name, "ms", rates, floors, aim=1.0, smaller_is_better=True, details=details)


@contextmanager
def _own_sender(engine: Engine, *, in_unit: bool) -> Iterator[Send]:
    from benchmarks.listeners.product import trickle

    if in_unit:
        from benchmarks.listeners.units import own_units

        with own_units(engine.url, trickle) as send:
            yield send
        return
    session_factory = sessionmaker(engine, class_=TaskSession)

    def send() -> None:
        with session_factory.begin() as session:
            session.enqueue(trickle, time.monotonic())

    yield send


def _peer_round(engine: Engine, tasks: int, *, in_unit: bool) -> list[float]:
    from benchmarks.listeners.peer import Producer
    from benchmarks.listeners.units import peer_units

    dsn = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with Producer(dsn) as producer, peer_units(engine.url) as send_in_unit:
        return _measure("benchmarks.listeners.peer", dsn, send_in_unit if in_unit else producer.send, tasks)


def _measure(listener: str, url: str, send: Send, tasks: int) -> list[float]:
    """Send a steady trickle to a listener process; the delays in milliseconds that it saw."""
    total = WARM_UP + tasks
    command = [sys.executable, "-m", listener, url, str(total)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise SystemExit(f"{listener} did not start")
        for _ in range(total):
            time.sleep(GAP_SECONDS)
            send()
        delays: list[float] = json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
    return delays[WARM_UP:]


def _quantile(figures: list[float], share: float) -> float:
    ordered = sorted(figures)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
