"""``relay``: messages per second from the outbox to a broker, without keys and over 1,000 keys.

Beside it, in alternating rounds and at the same batch: the broker's client alone; plain SQL that claims and marks; and,
where it is installed and the database is PostgreSQL, faststream-outbox to the same broker.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import uuid
from dataclasses import asdict
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import DeclarativeBase, sessionmaker

from benchmarks.contender import Order
from benchmarks.cpu import ServerCPU
from benchmarks.plain.base import Filling, body
from benchmarks.race import ROOT, race
from benchmarks.relaying import Job
from benchmarks.report import Result
from benchmarks.tables import BenchTask, empty, fresh_tables, plain_queue
from sa_taskqueue import OutboxKeyMixin, OutboxMixin, QueueMixin, TaskQueue, TaskSession

KEYS = 1_000
AIM_KEYED, AIM_FLOOR = 0.8, 0.5
PEER = "faststream_outbox"


class Base(DeclarativeBase):
    """The tables of this benchmark."""


class RelayTask(QueueMixin, Base):
    __tablename__ = "bench_relay_task"


class RelayOutbox(OutboxMixin, Base):
    __tablename__ = "bench_outbox"


class RelayKey(OutboxKeyMixin, Base):
    __tablename__ = "bench_outbox_key"


def relay_queue() -> TaskQueue:
    return TaskQueue(RelayTask, outbox=RelayOutbox, outbox_keys=RelayKey, source="/benchmarks")


def relay(engine: Engine, url: str, to: str, *, messages: int, rounds: int, batch: int) -> list[Result]:
    """All rounds of all kinds; each kind in a process of its own."""
    kinds = ["unkeyed", "keyed", "broker"]
    if engine.dialect.name == "postgresql" and importlib.util.find_spec(PEER):
        kinds.append("peer")
    rates: dict[str, list[float]] = {kind: [] for kind in [*kinds, "sql"]}
    try:
        with fresh_tables(engine):
            for number in range(rounds):
                for kind in kinds if number % 2 == 0 else reversed(kinds):
                    rates[kind].append(_round(engine, Job(kind, url, to, batch, messages, _topic())))
                rates["sql"].append(_plain(engine, url, messages, batch))
    finally:
        Base.metadata.drop_all(engine)
    return _results(rates, batch)


def _results(rates: dict[str, list[float]], batch: int) -> list[Result]:
    slower = min(("broker", "sql"), key=lambda kind: statistics.median(rates[kind]))
    others = {f"{kind}, rounds": [round(rate) for rate in rates[kind]] for kind in ("broker", "sql")}
    results = [
        Result(
            f"relay, no keys, batch {batch}, over the slower of broker and SQL ({slower})",
            "messages/s",
            rates["unkeyed"],
            rates[slower],
            AIM_FLOOR,
            details=others,
        ),
        Result(f"relay, {KEYS:,} keys, over no keys", "messages/s", rates["keyed"], rates["unkeyed"], AIM_KEYED),
    ]
    if "peer" in rates:
        results.append(
            Result("relay, no keys, over faststream-outbox", "messages/s", rates["unkeyed"], rates["peer"], 1.0)
        )
    keyed, unkeyed = statistics.median(rates["keyed"]), statistics.median(rates["unkeyed"])
    results[-1].details["keyed_over_unkeyed"] = round(keyed / unkeyed, 3)
    results[-1].details["ratio_to_floor"] = round(unkeyed / statistics.median(rates[slower]), 3)
    return results


def _round(engine: Engine, job: Job) -> float:
    if job.kind in ("unkeyed", "keyed"):
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        _fill(engine, job)
    command = [sys.executable, "-m", "benchmarks.relaying", json.dumps(asdict(job))]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    done: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    if done["done"] != job.messages:
        raise SystemExit(f"{job.kind}: {done['done']} of {job.messages} messages")
    return float(job.messages / done["seconds"])


def _fill(engine: Engine, job: Job) -> None:
    factory = sessionmaker(engine, class_=TaskSession, info={"task_queue": relay_queue()})
    for start in range(0, job.messages, 5_000):
        numbers = range(start, min(start + 5_000, job.messages))
        keys = {"key": None}
        with factory.begin() as session:
            session.publish_many(
                {
                    "topic": job.topic,
                    "payload": json.loads(body(number)),
                    **(keys if job.kind == "unkeyed" else {"key": f"key {number % KEYS}"}),
                }
                for number in numbers
            )
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in Base.metadata.sorted_tables:
                connection.exec_driver_sql(f"VACUUM ANALYZE {table.name}")


def _plain(engine: Engine, url: str, messages: int, batch: int) -> float:
    """Claim and mark by plain SQL, on the table of the other benchmarks."""
    empty(engine, BenchTask.__tablename__)
    plain = plain_queue(engine, BenchTask.__tablename__)
    plain.insert(Filling(messages))
    plain.settle_down()
    plain.close()
    return race([Order("floor", url, BenchTask.__tablename__, batch)], ServerCPU(engine)).rate


def _topic() -> str:
    return f"bench-{uuid.uuid4().hex[:12]}"
