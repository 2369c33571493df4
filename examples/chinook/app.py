"""The shop's queue, its one handler, and how it connects."""

from __future__ import annotations

from decimal import Decimal

from models import Customer, Invoice, InvoiceLine, Receipt, Task
from sqlalchemy import Engine, create_engine, make_url, select

from sa_taskqueue import TaskContext, TaskQueue, sqlite_engine

queue = TaskQueue(Task, default_queue="receipts")


@queue.task
def send_receipt(context: TaskContext, order_id: int) -> None:
    """Add up the order and write its receipt; the COMMIT that stores the receipt also completes the task."""
    session = context.session
    invoice = session.get_one(Invoice, order_id)
    customer = session.get_one(Customer, invoice.customer_id)
    lines = session.scalars(select(InvoiceLine).where(InvoiceLine.invoice_id == order_id))
    total = sum((line.unit_price * line.quantity for line in lines), Decimal("0.00"))
    session.add(Receipt(task_id=context.task.id, invoice_id=order_id, customer=customer.name, total=total))


def engine_for(url: str) -> Engine:
    """An engine for ``url``; a SQLite file needs the library's recipe, the others need nothing."""
    if make_url(url).get_backend_name() == "sqlite":
        return sqlite_engine(url)
    return create_engine(url)
