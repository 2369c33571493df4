"""The outbox of the shop, its keys, an inbox, and what the consumers write."""

from __future__ import annotations

from decimal import Decimal

from models import Base, Money, Task
from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from sa_taskqueue import InboxMixin, OutboxKeyMixin, OutboxMixin, TaskQueue


class Outbox(OutboxMixin, Base):
    __tablename__ = "chinook_outbox"


class OutboxKey(OutboxKeyMixin, Base):
    __tablename__ = "chinook_outbox_key"


class Inbox(InboxMixin, Base):
    __tablename__ = "chinook_inbox"


class Arrival(Base):
    """Each message that came, as often as it came; the ids of one customer's are in the order of their arrival."""

    __tablename__ = "chinook_arrival"

    id: Mapped[int] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(String(36))
    customer: Mapped[str] = mapped_column(String(20))
    seq: Mapped[int] = mapped_column(BigInteger)


class Shipment(Base):
    """The effect of a message. Nothing here is unique, so that one applied twice would be seen."""

    __tablename__ = "chinook_shipment"

    id: Mapped[int] = mapped_column(primary_key=True)
    line_id: Mapped[int]
    amount: Mapped[Decimal] = mapped_column(Money)


queue = TaskQueue(Task, outbox=Outbox, outbox_keys=OutboxKey, inbox=Inbox, source="/chinook")

SHARDS = 2


def topics(run: str) -> list[str]:
    """Each consumer has a topic of its own, and each customer always the same, so that the order can be seen."""
    return [f"chinook-{run}-{shard}" for shard in range(SHARDS)]


def topic_of(run: str, customer_id: int) -> str:
    return topics(run)[customer_id % SHARDS]
