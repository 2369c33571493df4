"""Messages of real orders: ``python examples/chinook/outbox.py --url DB --to BROKER --relays 3 --kill 2``.

Producer processes complete the 412 orders of the Chinook shop, and in the same unit of work publish one message for
each of the 2,240 lines, keyed by the customer. Relay processes carry them to the broker, and some are killed with
SIGKILL while they hold something. Consumers behind the inbox write the shipments. The last line is a JSON object:
nothing may be missing, come out of order, or be applied twice.

With ``--restart-broker`` the broker is one of the example's own, killed and started again while messages flow.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal

from app import engine_for
from killing import KilledHolding, kill_when_it_holds
from outbox_brokers import consumer_of
from outbox_models import Arrival, Outbox, OutboxKey, Shipment, topics
from outbox_restarting import own_broker
from run import PATIENCE_SECONDS, PRODUCERS, load_orders, start, tables
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

LINES = 2_240


@dataclass
class Summary:
    """What the run proved; ``published`` counts what arrived, repetitions among it."""

    published: int
    missing: int
    order_violations: int
    applied: int
    total: str

    @property
    def right(self) -> bool:
        return (self.missing, self.order_violations, self.applied) == (0, 0, LINES) and self.published >= LINES


def held(engine: Engine, name: str) -> int:
    """How many messages and keys the relay of that name has reserved."""
    messages = select(func.count()).select_from(Outbox).where(Outbox.status == "RUNNING", Outbox.reserved_by == name)
    keys = select(func.count()).select_from(OutboxKey).where(OutboxKey.reserved_by == name)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        return (connection.scalar(messages) or 0) + (connection.scalar(keys) or 0)


def summarise(engine: Engine) -> Summary:
    """Compare what was published with what arrived, in the order of the arrivals of each customer."""
    with Session(engine) as session:
        stored = set(map(str, session.scalars(select(Outbox.id))))
        arrivals = session.execute(select(Arrival.message_id, Arrival.customer, Arrival.seq).order_by(Arrival.id)).all()
        shipments = session.execute(select(Shipment.line_id, Shipment.amount)).all()
    violations, last = 0, Counter[str]()
    for arrival in arrivals:
        violations += arrival.seq > last[arrival.customer] + 1
        last[arrival.customer] = max(last[arrival.customer], arrival.seq)
    return Summary(
        published=len(arrivals),
        missing=len(stored - {arrival.message_id for arrival in arrivals}) + LINES - len(stored),
        order_violations=violations,
        applied=len(shipments),
        total=f"{sum((shipment.amount for shipment in shipments), Decimal('0.00')):.2f}",
    )


def wait_for_the_end(engine: Engine, producers: list[subprocess.Popen[bytes]]) -> None:
    """Wait until every message is sent and has arrived; printed about once a second."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with Session(engine) as session:
            stored = session.scalar(select(func.count()).select_from(Outbox)) or 0
            sent = session.scalar(select(func.count()).select_from(Outbox).where(Outbox.status == "SENT")) or 0
            arrived = session.scalar(select(func.count(Arrival.message_id.distinct()))) or 0
        print(f"published {stored}  sent {sent}  arrived {arrived}", flush=True)
        if arrived == sent == stored == LINES and all(producer.poll() is not None for producer in producers):
            return
        time.sleep(1)
    sys.exit(f"messages are still on their way after {PATIENCE_SECONDS:.0f} seconds")


@contextlib.contextmanager
def broker_topics(to: str, run: str) -> Iterator[None]:
    """The topics of this run, made before anything is sent, and removed."""

    async def each(action: str) -> None:
        for topic in topics(run):
            consumer = consumer_of(to, topic)
            await getattr(consumer, action)()
            await consumer.close()

    asyncio.run(each("prepare"))
    try:
        yield
    finally:
        asyncio.run(each("remove"))


def carry(
    engine: Engine, url: str, to: str, run: str, *, relays: int, kill: int, restart: Callable[[], None] | None
) -> list[KilledHolding]:
    """Run producers, relays and consumers to the end; what the killed relays held."""
    names = [f"chinook-relay-{number}" for number in range(relays)]
    consumers = [start("outbox_consumer.py", url, to, topic) for topic in topics(run)]
    running = {name: start("outbox_relay.py", url, to, name) for name in names}
    producers = [start("outbox_producer.py", url, run, str(number), str(PRODUCERS)) for number in range(PRODUCERS)]
    processes = (*running.values(), *producers, *consumers)
    try:
        killed = [
            kill_when_it_holds(running[name], name, PATIENCE_SECONDS, lambda name=name: held(engine, name))
            for name in names[:kill]
        ]
        if restart is not None:
            restart()
        wait_for_the_end(engine, producers)
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait(timeout=60)
    if failed := [producer.returncode for producer in producers if producer.returncode]:
        sys.exit(f"a producer ended with code {failed[0]}")
    return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="SQLAlchemy URL of a database, for example sqlite:///shop.db")
    parser.add_argument("--to", required=True, help="URL of a broker: redis://, amqp://, nats:// or kafka://")
    parser.add_argument("--relays", type=int, default=3)
    parser.add_argument("--kill", type=int, default=1, help="how many relays are killed while they hold something")
    parser.add_argument("--restart-broker", action="store_true", help="use a broker of the example's own, and kill it")
    parser.add_argument("--keep-tables", action="store_true", help="leave the tables for you to look at")
    options = parser.parse_args()
    if not 0 <= options.kill < options.relays:
        parser.error("--kill must be smaller than --relays: somebody has to finish the work")
    engine, run = engine_for(options.url), uuid.uuid4().hex[:8]
    with contextlib.ExitStack() as stack:
        to, restart = options.to, None
        if options.restart_broker:
            to, restart = stack.enter_context(own_broker(options.to))
        stack.enter_context(tables(engine, keep=options.keep_tables))
        stack.enter_context(broker_topics(to, run))
        load_orders(engine)
        killed = carry(engine, options.url, to, run, relays=options.relays, kill=options.kill, restart=restart)
        for death in killed:
            print(f"killed {death.name} while it held {death.held}")
        summary = summarise(engine)
    engine.dispose()
    print(json.dumps(asdict(summary)))
    if not summary.right:
        sys.exit(1)


if __name__ == "__main__":
    main()
