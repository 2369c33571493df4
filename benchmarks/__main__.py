"""``python -m benchmarks COMMAND --url URL [--json] [--rounds 5]``; without a command it lists them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.decay import CASES, decay
from benchmarks.decay import Options as DecayOptions
from benchmarks.drain import Options as DrainOptions
from benchmarks.drain import drain
from benchmarks.enqueue import enqueue
from benchmarks.enqueue_from import enqueue_from
from benchmarks.floor import floor
from benchmarks.latency import latency
from benchmarks.relay import relay
from benchmarks.report import Result, show
from benchmarks.strategies import Options as StrategiesOptions
from benchmarks.strategies import strategies
from benchmarks.tables import make_engine
from benchmarks.wal import wal

Command = Callable[[argparse.Namespace], list[Result]]


def run_floor(options: argparse.Namespace) -> list[Result]:
    engine = make_engine(options.url, synchronous=options.synchronous)
    return floor(
        engine,
        options.url,
        tasks=options.tasks,
        rounds=options.rounds,
        batches=options.batches,
        synchronous=options.synchronous,
    )


def run_enqueue(options: argparse.Namespace) -> list[Result]:
    engine = make_engine(options.url, synchronous=options.synchronous)
    return enqueue(engine, rounds=options.rounds, units=options.units, many=options.many)


def run_enqueue_from(options: argparse.Namespace) -> list[Result]:
    engine = make_engine(options.url, synchronous=options.synchronous)
    return enqueue_from(engine, rounds=options.rounds, rows=options.rows)


def run_drain(options: argparse.Namespace) -> list[Result]:
    engine = make_engine(options.url, synchronous=options.synchronous)
    chosen = DrainOptions(
        options.url,
        options.tasks,
        options.rounds,
        options.batch,
        delete=options.finish == "delete",
        synchronous=options.synchronous,
        handler=options.handler,
    )
    return drain(engine, chosen)


def run_latency(options: argparse.Namespace) -> list[Result]:
    engine = make_engine(options.url, synchronous=options.synchronous)
    return latency(engine, options.url, rounds=options.rounds, tasks=options.tasks)


def run_decay(options: argparse.Namespace) -> list[Result]:
    engine = make_engine(options.url, synchronous=options.synchronous)
    chosen = DecayOptions(
        options.url,
        options.tasks,
        options.rounds,
        options.batch,
        options.scale,
        synchronous=options.synchronous,
        handler=options.handler,
    )
    return decay(engine, chosen, options.case or list(CASES))


def run_strategies(options: argparse.Namespace) -> list[Result]:
    """Each strategy that the database carries in turn; on PostgreSQL as a user who may CHECKPOINT. The last line is
    one JSON object.
    """
    chosen = StrategiesOptions(options.url, options.tasks, options.rounds, options.batch)
    strategies(make_engine(options.url, synchronous=options.synchronous), chosen, as_json=options.json)
    return []


def run_wal(options: argparse.Namespace) -> list[Result]:
    """PostgreSQL only, as a user who may CHECKPOINT, on a server that nobody else uses meanwhile."""
    engine = make_engine(options.url)
    return wal(engine, options.url, tasks=options.tasks, rounds=options.rounds, batch=options.batch)


def run_relay(options: argparse.Namespace) -> list[Result]:
    """From the outbox to a broker."""
    engine = make_engine(options.url, synchronous=options.synchronous)
    return relay(engine, options.url, options.to, messages=options.messages, rounds=options.rounds, batch=options.batch)


def parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", required=True, help="SQLAlchemy URL; tables bench_* are made and dropped in it")
    common.add_argument("--rounds", type=int, default=5)
    common.add_argument("--json", action="store_true", help="print only JSON, one object per line")
    common.add_argument("--synchronous", default="FULL", choices=["FULL", "NORMAL"], help="SQLite's setting")
    worker = argparse.ArgumentParser(add_help=False)
    worker.add_argument("--batch", type=int, default=100)
    worker.add_argument("--handler", default="sync", choices=["sync", "async"])
    top = argparse.ArgumentParser(prog="python -m benchmarks")
    commands = top.add_subparsers(required=True)

    def command(name: str, run: Command, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        added = commands.add_parser(name, parents=[common, *parents], description=run.__doc__)
        added.set_defaults(run=run)
        return added

    floors = command("floor", run_floor)
    floors.add_argument("--tasks", type=int, default=40_000)
    floors.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100, 1000])
    enqueues = command("enqueue", run_enqueue)
    enqueues.add_argument("--units", type=int, default=1_000, help="commits of one task per round")
    enqueues.add_argument("--many", type=int, default=20_000, help="tasks of one enqueue_many")
    from_rows = command("enqueue-from", run_enqueue_from)
    from_rows.add_argument("--rows", type=int, default=1_000_000, help="rows that one UPDATE changes")
    drains = command("drain", run_drain, worker)
    drains.add_argument("--tasks", type=int, default=50_000)
    drains.add_argument("--finish", default="complete", choices=["complete", "delete"])
    command("latency", run_latency).add_argument("--tasks", type=int, default=200)
    decays = command("decay", run_decay, worker)
    decays.add_argument("--tasks", type=int, default=50_000)
    decays.add_argument("--case", action="append", choices=list(CASES), help="may be repeated; default: all")
    decays.add_argument("--scale", type=float, default=1.0, help="share of the full number of rows in the way")
    command("strategies", run_strategies, worker).add_argument("--tasks", type=int, default=3_000)
    command("wal", run_wal, worker).add_argument("--tasks", type=int, default=20_000)
    relays = command("relay", run_relay)
    relays.add_argument("--to", required=True, help="URL of the broker")
    relays.add_argument("--messages", type=int, default=20_000)
    relays.add_argument("--batch", type=int, default=500)
    return top


def main() -> None:
    options = parser().parse_args()
    if results := options.run(options):
        show(results, as_json=options.json)


if __name__ == "__main__":
    main()
