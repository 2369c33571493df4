"""A table whose changes publish, by the session and by a trigger."""

from __future__ import annotations

import uuid

from sqlalchemy import String, Uuid
from sqlalchemy.orm import Mapped, mapped_column

from tests.outbox.models import Base, queue


class Shipment(Base):
    __tablename__ = "ob_shipment"

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str | None] = mapped_column(String(20))
    customer: Mapped[uuid.UUID] = mapped_column(Uuid)
    note: Mapped[str | None] = mapped_column(String(60))


queue.on_change(Shipment.status, to="sent").publish(
    "shipments.sent", {"id": Shipment.id, "note": lambda shipment: shipment.note, "by": "us"}, key=Shipment.customer
)
queue.on_change(Shipment.status, to="lost").publish(
    "shipments.lost", lambda shipment: [shipment.id], headers={"h": "1"}, type="Lost"
)
by_trigger = queue.on_change(Shipment.note, to={"a", "it's b"}, by="trigger").publish(
    "shipments.noted", {"id": Shipment.id, "note": Shipment.note}, key=Shipment.customer, ordered=False
)
