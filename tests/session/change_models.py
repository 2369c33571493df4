"""A table whose changes are seen by the session, and one whose changes are seen by triggers."""

from __future__ import annotations

import enum
import uuid
from decimal import Decimal
from typing import Any, ClassVar

from sqlalchemy import Numeric, String, event
from sqlalchemy.orm import Mapped, mapped_column

from sa_taskqueue.models.types import TaskId
from sa_taskqueue.queue import TaskQueue
from tests.session.models import Base, Job


class State(enum.Enum):
    OPEN = "open"
    DONE = "it's done"
    VOID = "void"


class Ticket(Base):
    __tablename__ = "session_ticket"

    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[State] = mapped_column(default=State.OPEN)
    note: Mapped[str | None] = mapped_column(String(40))
    points: Mapped[int] = mapped_column(default=0, server_default="0")
    kind: Mapped[str] = mapped_column(String(10), default="ticket")

    __mapper_args__: ClassVar[Any] = {"polymorphic_on": "kind", "polymorphic_identity": "ticket"}


class UrgentTicket(Ticket):
    __mapper_args__: ClassVar[Any] = {"polymorphic_identity": "urgent"}


class Parcel(Base):
    """Names that need quotes, and a key in 16 bytes."""

    __tablename__ = "session_parcel"

    id: Mapped[uuid.UUID] = mapped_column(TaskId, primary_key=True)
    status: Mapped[str | None] = mapped_column("Order", String(20))
    weight: Mapped[Decimal] = mapped_column(Numeric(8, 2), default=Decimal(0))


queue = TaskQueue(Job)


@queue.task(queue="mail")
def closed(ticket_id: int, state: State, note: str | None = None, *, lang: str = "en") -> None:
    """Never run here."""


@queue.task
def scored(ticket_id: int, points: int) -> None:
    """Never run here."""


@queue.task
def reopened(ticket_id: int) -> None:
    """Never run here."""


@queue.task(queue="parcels")
def sent(parcel_id: uuid.UUID, weight: Decimal, text: str) -> None:
    """Never run here."""


@queue.task
def heavy(parcel_id: uuid.UUID) -> None:
    """Never run here."""


queue.on_change(Ticket.state, to={State.DONE, State.VOID}).enqueue(
    closed, ticket_id=Ticket.id, state=Ticket.state, note=lambda ticket: ticket.note, lang="fr"
)
queue.on_change(Ticket.state, to=State.OPEN, from_=State.DONE).enqueue(reopened, ticket_id=Ticket.id)
queue.on_change(Ticket.points, when=lambda ticket: ticket.points > 10).enqueue(
    scored.using(priority=-1), lambda ticket: {"ticket_id": ticket.id, "points": ticket.points}
)
queue.on_change(Parcel.status, to="sent", by="trigger").enqueue(
    sent, parcel_id=Parcel.id, weight=Parcel.weight, text='100 % it\'s "so" \\ :x {}'
)
queue.on_change(Parcel.weight, when=Parcel.weight > 20, by="trigger", name="parcel_is_heavy").enqueue(
    heavy, parcel_id=Parcel.id
)

event.listen(Base.metadata, "after_create", queue.triggers().create)
event.listen(Base.metadata, "before_drop", queue.triggers().drop)
