"""The sessions that tasks can be enqueued in, and the sync Session inside each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast

from sqlalchemy.orm import Session, scoped_session

from sa_taskqueue.exceptions import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session

SyncTarget: TypeAlias = Union[Session, "scoped_session[Any]"]
AsyncTarget: TypeAlias = "AsyncSession | async_scoped_session[Any]"
AnySession: TypeAlias = Union[SyncTarget, "AsyncTarget"]


def is_async(session: object) -> bool:
    """Tell an AsyncSession or async_scoped_session from the sync ones, without importing asyncio's."""
    return not isinstance(session, (Session, scoped_session))


def async_session(session: AsyncTarget) -> AsyncSession:
    """Return the AsyncSession itself, or the one that a registry of them gives in this scope."""
    return cast("AsyncSession", session if hasattr(session, "run_sync") else cast("Callable[[], Any]", session)())


def sync_session(session: AnySession) -> Session:
    """Return the sync Session in which an AsyncSession or a registry of sessions does its work."""
    if isinstance(session, Session):
        return session
    if isinstance(session, scoped_session):
        return cast("Session", session())
    inner = getattr(session, "sync_session", None)
    if isinstance(inner, Session):
        return inner
    if hasattr(session, "registry") and callable(
        session
    ):  # async_scoped_session; a factory's new session would be lost
        return sync_session(session())
    raise InvalidSetting(
        setting="session",
        value=session,
        allowed="an open Session, AsyncSession or scoped session, as `with Session.begin() as session:` gives it",
    )
