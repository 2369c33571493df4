"""One outbox of each kind, with its keys and an inbox, and a business table."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from sa_taskqueue import DebeziumOutboxMixin, InboxMixin, OutboxKeyMixin, OutboxMixin, QueueMixin, TaskQueue


class Base(DeclarativeBase):
    pass


class Task(QueueMixin, Base):
    __tablename__ = "ob_task"


class Outbox(OutboxMixin, Base):
    __tablename__ = "ob_outbox"

    tenant: Mapped[str | None] = mapped_column(String(20))


class OutboxKey(OutboxKeyMixin, Base):
    __tablename__ = "ob_outbox_key"


class Inbox(InboxMixin, Base):
    __tablename__ = "ob_inbox"


class CapturedOutbox(DebeziumOutboxMixin, Base):
    __tablename__ = "ob_captured"


class Account(Base):
    """What a transaction changes beside its messages; its table's name comes after theirs in a flush."""

    __tablename__ = "ob_zaccount"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    balance: Mapped[int] = mapped_column(default=0)


queue = TaskQueue(Task, outbox=Outbox, outbox_keys=OutboxKey, inbox=Inbox, source="/tests")
captured = TaskQueue(Task, outbox=CapturedOutbox)
bare = TaskQueue(Task)
