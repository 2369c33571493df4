# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from sa_taskqueue import AsyncTaskSession, TaskSession, enqueue, enqueue_many
from tests.types.tasks import async_bare, bare, with_context


def sync_sessions(session: TaskSession, plain: Session) -> None:
    session.enqueue(bare, 1, lang="fr")
    session.enqueue(with_context.using(priority=1), order_id=1)
    session.enqueue(bare.using(run_after=timedelta(hours=1)), 1)
    enqueue(plain, async_bare, 1)
    ids: list[UUID] = session.enqueue_many(bare, [{"order_id": 1}, bare.new(2)])
    assert ids


def wrong_in_sync_sessions(session: TaskSession, plain: Session) -> None:
    session.enqueue(bare)  # type: ignore[call-arg]
    session.enqueue(bare, "1")  # type: ignore[arg-type]
    session.enqueue(with_context, 1, 2)  # type: ignore[call-arg]
    session.enqueue(bare.using(priority=1), ordre_id=1)  # type: ignore[call-arg]
    enqueue(plain, async_bare, "1")  # type: ignore[arg-type]
    enqueue(plain, lambda: None)  # type: ignore[arg-type]


async def async_sessions(session: AsyncTaskSession, plain: AsyncSession) -> None:
    session.enqueue(bare, 1, lang="fr")
    session.enqueue(async_bare, "1")  # type: ignore[arg-type]
    enqueue(plain, bare, 1)
    ids: list[UUID] = await session.enqueue_many(bare, [{"order_id": 1}])
    ids = await enqueue_many(plain, bare, [bare.new(1)])
    assert ids
