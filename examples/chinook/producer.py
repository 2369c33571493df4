"""One producer process: completes its share of the orders, each in a unit of work of its own.

Usage: ``python producer.py URL NUMBER OF`` takes the open orders whose id leaves ``NUMBER`` when divided by ``OF``.
"""

from __future__ import annotations

import sys

from app import engine_for, send_receipt
from models import Invoice
from sqlalchemy import select
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession


def main(url: str, number: int, of: int) -> None:
    engine = engine_for(url)
    session_factory = sessionmaker(engine, class_=TaskSession)
    with session_factory() as session:
        order_ids = session.scalars(select(Invoice.id).where(Invoice.id % of == number).order_by(Invoice.id)).all()
    for order_id in order_ids:
        with session_factory.begin() as session:
            session.get_one(Invoice, order_id).status = "complete"
            session.enqueue(send_receipt, order_id=order_id)
    engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
