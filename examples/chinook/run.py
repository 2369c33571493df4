"""The whole job on real orders: ``python examples/chinook/run.py --url URL --workers 3 --kill 1``.

Several producer processes complete the 412 orders of the Chinook shop, one unit of work each, and every unit of work
enqueues a task. Several worker processes write the receipts, and some of them are killed with SIGKILL while they hold
a task. The last line is a JSON object: nothing may be lost, and no receipt may be written twice.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

from app import engine_for
from killing import KilledHolding, kill_while_it_holds, wait_until_it_holds
from models import Base, Customer, Invoice, InvoiceLine, Receipt, Task
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "chinook.json"
PRODUCERS = 3
PATIENCE_SECONDS = 180.0
OPEN = ("SCHEDULED", "NEW", "RUNNING")


@dataclass
class Summary:
    """What the run proved; ``total`` is the sum of the receipts."""

    orders: int
    completed: int
    lost: int
    effects_twice: int
    total: str

    @property
    def right(self) -> bool:
        return self.completed == self.orders and self.lost == 0 and self.effects_twice == 0


def load_orders(engine: Engine) -> int:
    """Store the shop's customers, orders and lines; the number of orders."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    with Session(engine) as session, session.begin():
        for row in data["Customer"]:
            name = f"{row['FirstName']} {row['LastName']}"
            session.add(Customer(id=row["CustomerId"], name=name, email=row["Email"]))
        session.flush()
        for row in data["Invoice"]:
            ordered_at = dt.datetime.fromisoformat(row["InvoiceDate"])
            session.add(Invoice(id=row["InvoiceId"], customer_id=row["CustomerId"], ordered_at=ordered_at))
        session.flush()
        for row in data["InvoiceLine"]:
            price = Decimal(row["UnitPrice"])
            line = InvoiceLine(id=row["InvoiceLineId"], invoice_id=row["InvoiceId"], unit_price=price)
            line.quantity = row["Quantity"]
            session.add(line)
    return len(data["Invoice"])


@contextmanager
def tables(engine: Engine, *, keep: bool) -> Iterator[None]:
    """The example's tables, made new, and dropped at the end unless they are to be kept."""
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    try:
        yield
    finally:
        if not keep:
            Base.metadata.drop_all(engine)


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(HERE / script), *arguments])


def wait_for_the_end(engine: Engine, producers: list[subprocess.Popen[bytes]], orders: int) -> None:
    """Wait until every producer is done and no task is open; printed about once a second."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with Session(engine) as session:
            stored = session.scalar(select(func.count()).select_from(Task)) or 0
            still_open = session.scalar(select(func.count()).select_from(Task).where(Task.status.in_(OPEN))) or 0
        print(f"orders {orders}  enqueued {stored}  open {still_open}", flush=True)
        if still_open == 0 and all(producer.poll() is not None for producer in producers):
            return
        time.sleep(1)
    sys.exit(f"tasks are still open after {PATIENCE_SECONDS:.0f} seconds")


def summarise(engine: Engine) -> Summary:
    """Count what is in the tables after everything has ended."""
    with Session(engine) as session:
        orders = session.scalar(select(func.count()).select_from(Invoice).where(Invoice.status == "complete")) or 0
        completed = session.scalar(select(func.count()).select_from(Task).where(Task.status == "COMPLETED")) or 0
        receipts = session.execute(select(Receipt.invoice_id, Receipt.total)).all()
    with_receipt = {receipt.invoice_id for receipt in receipts}
    total = sum((receipt.total for receipt in receipts), Decimal("0.00"))
    return Summary(
        orders=orders,
        completed=completed,
        lost=orders - len(with_receipt),
        effects_twice=len(receipts) - len(with_receipt),
        total=f"{total:.2f}",
    )


def work_off(engine: Engine, url: str, *, workers: int, kill: int, orders: int) -> list[KilledHolding]:
    """Run producers and workers to the end; what the killed workers held."""
    names = [f"chinook-{number}" for number in range(workers)]
    producers = [start("producer.py", url, str(number), str(PRODUCERS)) for number in range(PRODUCERS)]
    # The last to start finds the least to do: those that are to be killed while they hold something go first.
    running = {name: start("worker.py", url, name) for name in names[:kill]}
    try:
        for name in names[:kill]:
            wait_until_it_holds(engine, name, PATIENCE_SECONDS)
        running |= {name: start("worker.py", url, name) for name in names[kill:]}
        killed = [kill_while_it_holds(engine, running[name], name, PATIENCE_SECONDS) for name in names[:kill]]
        wait_for_the_end(engine, producers, orders)
    finally:
        for process in (*running.values(), *producers):
            if process.poll() is None:
                process.terminate()
        for process in (*running.values(), *producers):
            process.wait(timeout=60)
    if failed := [producer.returncode for producer in producers if producer.returncode]:
        sys.exit(f"a producer ended with code {failed[0]}")
    return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="SQLAlchemy URL of a database, for example sqlite:///shop.db")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kill", type=int, default=1, help="how many workers are killed while they hold a task")
    parser.add_argument("--keep-tables", action="store_true", help="leave the tables for you to look at")
    options = parser.parse_args()
    if not 0 <= options.kill < options.workers:
        parser.error("--kill must be smaller than --workers: somebody has to finish the work")
    engine = engine_for(options.url)
    with tables(engine, keep=options.keep_tables):
        orders = load_orders(engine)
        killed = work_off(engine, options.url, workers=options.workers, kill=options.kill, orders=orders)
        for death in killed:
            print(f"killed {death.name} while it held {death.held} task(s)")
        summary = summarise(engine)
    engine.dispose()
    print(json.dumps(asdict(summary)))
    if not summary.right or summary.orders != orders:
        sys.exit(1)


if __name__ == "__main__":
    main()
