# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from sa_taskqueue import (
    AsyncTaskSession,
    TaskSession,
    enqueue,
    enqueue_from,
    enqueue_many,
    first_time,
    publish,
    publish_many,
)
from tests.types.tasks import async_bare, bare, queue, with_context


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str]


CHANGE = update(Order).values(status="done")


def by_statement(session: TaskSession, plain: Session) -> None:
    count: int = session.enqueue_from(CHANGE, bare, order_id=Order.id)
    rows: Sequence[Row[int, str]] = session.enqueue_from(CHANGE.returning(Order.id, Order.status), bare, order_id=1)
    found: int = enqueue_from(plain, select(Order.id), bare.using(priority=1), order_id=Order.id)
    assert count
    assert rows
    assert found
    session.enqueue_from(CHANGE, 1)  # type: ignore[call-overload]


async def by_statement_async(session: AsyncTaskSession, plain: AsyncSession) -> None:
    count: int = await session.enqueue_from(delete(Order), bare, order_id=Order.id)
    rows: Sequence[Row[int]] = await session.enqueue_from(CHANGE.returning(Order.id), bare, order_id=Order.id)
    gone: int = await enqueue_from(plain, delete(Order), bare, order_id=Order.id)
    assert count
    assert rows
    assert gone


def sync_sessions(session: TaskSession, plain: Session) -> None:
    session.enqueue(bare, 1, lang="fr")
    session.enqueue(with_context.using(priority=1), order_id=1)
    session.enqueue(bare.using(run_after=timedelta(hours=1)), 1)
    enqueue(plain, async_bare, 1)
    ids: list[UUID] = session.enqueue_many(bare, [{"order_id": 1}, bare.new(2)])
    session.publish("orders.completed", {"order_id": 1}, key="1", type="OrderCompleted", ordered=False)
    ids = session.publish_many([{"topic": "t", "payload": 1}, queue.message("t", [1])])
    ids = publish_many(plain, queue, [{"topic": "t", "payload": 1}])
    new: bool = session.first_time("m", source="/s")
    new = first_time(plain, queue, ids[0], key="k", seq=1)
    assert new
    publish(plain, queue, "t", None, run_after=timedelta(hours=1), headers={"a": "b"})
    assert ids


def wrong_in_sync_sessions(session: TaskSession, plain: Session) -> None:
    session.enqueue(bare)  # type: ignore[call-arg]
    session.enqueue(bare, "1")  # type: ignore[arg-type]
    session.enqueue(with_context, 1, 2)  # type: ignore[call-arg]
    session.enqueue(bare.using(priority=1), ordre_id=1)  # type: ignore[call-arg]
    enqueue(plain, async_bare, "1")  # type: ignore[arg-type]
    enqueue(plain, lambda: None)  # type: ignore[arg-type]
    session.publish("t")  # type: ignore[call-arg]
    session.publish("t", 1, key=7)  # type: ignore[arg-type]
    publish(plain, "t", 1)  # type: ignore[arg-type, call-arg]


async def async_sessions(session: AsyncTaskSession, plain: AsyncSession) -> None:
    session.enqueue(bare, 1, lang="fr")
    session.enqueue(async_bare, "1")  # type: ignore[arg-type]
    enqueue(plain, bare, 1)
    ids: list[UUID] = await session.enqueue_many(bare, [{"order_id": 1}])
    ids = await enqueue_many(plain, bare, [bare.new(1)])
    session.publish("t", 1, key="1")
    ids = await session.publish_many([{"topic": "t", "payload": 1}])
    ids = await publish_many(plain, queue, [queue.message("t", 1)])
    new: bool = await session.first_time("m", key="k", seq=1, gaps="accept")
    new = await first_time(plain, queue, "m")
    assert new
    assert ids
