"""``drain``: a worker's rate with a handler that does nothing, beside the floor at the same batch size."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU
from benchmarks.plain.base import Filling
from benchmarks.race import Outcome, race
from benchmarks.report import Result
from benchmarks.tables import BenchTask, Synchronous, empty, fresh_tables, plain_queue

AIMS = {"postgresql": 0.6, "mysql": 0.4, "mariadb": 0.4, "sqlite": 0.25}
CPU_LIMIT = 1.2
"""CPU per task with two processes may be this many times one's."""


@dataclass(frozen=True)
class Options:
    """How much is drained, and how."""

    url: str
    tasks: int
    rounds: int
    batch: int
    delete: bool
    synchronous: Synchronous = "FULL"
    handler: str = "sync"

    def order(self, kind: str) -> Order:
        table = BenchTask.__tablename__
        return Order(
            kind,
            self.url,
            table,
            self.batch,
            delete=self.delete,
            synchronous=self.synchronous,
            handler=self.handler,
        )


def drain(engine: Engine, options: Options) -> list[Result]:
    """One process against the floor, then two processes against one, in alternating rounds."""
    server = ServerCPU(engine)
    floors: list[Outcome] = []
    ones: list[Outcome] = []
    twos: list[Outcome] = []
    with fresh_tables(engine):
        for _ in range(options.rounds):
            floors.append(_one_round(engine, server, options, "floor", 1))
            ones.append(_one_round(engine, server, options, "product", 1))
            twos.append(_one_round(engine, server, options, "product", 2))
    return [_against_floor(engine, options, ones, floors), _two_against_one(options, twos, ones)]


def _one_round(engine: Engine, server: ServerCPU, options: Options, kind: str, processes: int) -> Outcome:
    empty(engine, BenchTask.__tablename__)
    plain = plain_queue(engine, BenchTask.__tablename__)
    plain.insert(Filling(options.tasks))
    plain.settle_down()
    plain.close()
    outcome = race([options.order(kind)] * processes, server)
    if outcome.done != options.tasks:
        raise SystemExit(f"{kind} did {outcome.done} of {options.tasks} tasks")
    return outcome


def _against_floor(engine: Engine, options: Options, ones: list[Outcome], floors: list[Outcome]) -> Result:
    finish = "delete" if options.delete else "complete"
    return Result(
        name=f"drain, one process, batch {options.batch}, {finish}",
        unit="tasks/s",
        rates=[one.rate for one in ones],
        floors=[floor.rate for floor in floors],
        aim=AIMS[engine.dialect.name],
        details={
            "CPU us per task, product": _cpu(ones),
            "CPU us per task, floor": _cpu(floors),
            "the library's share of the client's CPU": round(1 - _client_us(floors) / _client_us(ones), 2),
        },
    )


def _two_against_one(options: Options, twos: list[Outcome], ones: list[Outcome]) -> Result:
    growth = _total_us(twos) / _total_us(ones)
    verdict = "within" if growth <= CPU_LIMIT else "MISSED"
    return Result(
        name=f"drain, two processes against one, batch {options.batch}",
        unit="tasks/s",
        rates=[two.rate for two in twos],
        floors=[one.rate for one in ones],
        aim=1.0,
        details={
            "CPU us per task, two": _cpu(twos),
            "CPU per task, two over one": f"{growth:.2f} (limit {CPU_LIMIT}: {verdict})",
        },
    )


def _cpu(outcomes: list[Outcome]) -> dict[str, float | None]:
    middle = _median(outcomes)
    client, server = round(middle.client_us, 1), middle.server_us
    share = None if server is None else round(client / (client + server), 2)
    return {"client": client, "server": None if server is None else round(server, 1), "client's share": share}


def _total_us(outcomes: list[Outcome]) -> float:
    middle = _median(outcomes)
    return middle.client_us + (middle.server_us or 0.0)


def _client_us(outcomes: list[Outcome]) -> float:
    return _median(outcomes).client_us


def _median(outcomes: list[Outcome]) -> Outcome:
    """The round with the middle CPU time per task."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.client_us + (outcome.server_us or 0.0))
    return ordered[len(ordered) // 2]
