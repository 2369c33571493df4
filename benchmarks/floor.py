"""``floor``: what plain SQL through the driver reaches on this machine, by batch size and kind of finish."""

from __future__ import annotations

from sqlalchemy import Engine

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU
from benchmarks.plain.base import Filling
from benchmarks.race import race
from benchmarks.report import Result
from benchmarks.tables import BenchTask, Synchronous, empty, fresh_tables, plain_queue


def floor(
    engine: Engine, url: str, *, tasks: int, rounds: int, batches: list[int], synchronous: Synchronous
) -> list[Result]:
    """Claim and finish at each batch size, finished by UPDATE and by DELETE; there is no product to compare with."""
    results = []
    with fresh_tables(engine):
        for batch in batches:
            for delete in (False, True):
                count = min(tasks, batch * 200)
                order = Order("floor", url, BenchTask.__tablename__, batch, delete=delete, synchronous=synchronous)
                rates = [_rate(engine, order, count) for _ in range(rounds)]
                finish = "delete" if delete else "complete"
                name = f"plain SQL, batch {batch}, claim and {finish}"
                results.append(Result(name=name, unit="tasks/s", rates=rates, floors=list(rates)))
    return results


def _rate(engine: Engine, order: Order, count: int) -> float:
    empty(engine, order.table)
    plain = plain_queue(engine, order.table)
    plain.insert(Filling(count))
    plain.settle_down()
    plain.close()
    return race([order], ServerCPU(engine)).rate
