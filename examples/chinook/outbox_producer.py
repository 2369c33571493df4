"""One producer process: ``python outbox_producer.py URL RUN NUMBER OF``. It completes its share of the orders.

Each order is a unit of work, and in it one message for each line, keyed by the customer.
"""

from __future__ import annotations

import sys

from app import engine_for
from models import Invoice, InvoiceLine
from outbox_models import queue, topic_of
from sqlalchemy import select
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession


def main(url: str, run: str, number: int, of: int) -> None:
    engine = engine_for(url)
    sessions = sessionmaker(engine, class_=TaskSession, info={"task_queue": queue})
    with sessions() as session:
        order_ids = session.scalars(select(Invoice.id).where(Invoice.id % of == number).order_by(Invoice.id)).all()
    for order_id in order_ids:
        with sessions.begin() as session:
            invoice = session.get_one(Invoice, order_id)
            invoice.status = "complete"
            lines = session.scalars(select(InvoiceLine).where(InvoiceLine.invoice_id == order_id)).all()
            for line in lines:
                payload = {"line_id": line.id, "amount": str(line.unit_price * line.quantity)}
                topic, customer = topic_of(run, invoice.customer_id), str(invoice.customer_id)
                session.publish(topic, payload, key=customer, type="chinook.line")
    engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
