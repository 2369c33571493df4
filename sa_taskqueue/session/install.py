"""`install`: `enqueue` for session factories and classes that exist already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.orm import Session, scoped_session, sessionmaker

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.session.bulk import enqueue_many
from sa_taskqueue.session.by_statement import enqueue_from
from sa_taskqueue.session.enqueue import enqueue
from sa_taskqueue.session.hooks import hook
from sa_taskqueue.session.methods import first_time, publish, publish_from, publish_many
from sa_taskqueue.session.queues import set_queue

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskQueue

Target = TypeVar("Target")

_METHODS: tuple[Any, ...] = (enqueue, enqueue_many, enqueue_from, publish, publish_many, publish_from, first_time)

_ALLOWED = "a sessionmaker, async_sessionmaker, scoped session, or a subclass of Session or AsyncSession"


def install(target: Target, *, queue: TaskQueue | None = None) -> Target:
    """Give a session factory or class the methods of `TaskSession`, and return it.

    ``queue`` is the one whose outbox and inbox its sessions use; without it the only one in the program that has them.
    Takes a sessionmaker, an async_sessionmaker, a scoped session (also Flask-SQLAlchemy's `db.session`) or your own
    subclass of Session or AsyncSession. SQLAlchemy's own classes stay as they are. Type checkers cannot follow this:
    for typed methods use TaskSession, AsyncTaskSession or TaskSessionMixin, or the function `enqueue`.
    """
    if isinstance(target, type):
        _install_class(target, queue)
    elif isinstance(target, sessionmaker):
        _install_class(target.class_, queue)  # a subclass that the sessionmaker has made for itself
    elif isinstance(target, scoped_session):
        install(target.session_factory, queue=queue)
        _add_methods(target)
    elif _async_session_class() is not _NoSession:
        _install_async(target, queue)
    else:
        raise InvalidSetting(setting="install(...)", value=target, allowed=_ALLOWED)
    return target


def _install_class(cls: type[Any], queue: TaskQueue | None) -> None:
    if _is_below(cls, Session):
        hook(cls)
        if queue is not None:
            set_queue(cls, queue)
        _add_methods(cls)
    elif _is_below(cls, _async_session_class()):
        cls.sync_session_class = _hooked_subclass(cls.sync_session_class, queue)
        _add_methods(cls)
    else:
        raise InvalidSetting(setting="install(...)", value=cls, allowed=_ALLOWED)


def _is_below(cls: type[Any], base: type[Any]) -> bool:
    """Tell a subclass from the class itself, which everyone shares."""
    return issubclass(cls, base) and cls is not base


def _install_async(target: Any, queue: TaskQueue | None) -> None:
    from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker

    if isinstance(target, async_scoped_session):
        install(target.session_factory, queue=queue)
        _add_methods(target)
    elif isinstance(target, async_sessionmaker):
        # Unlike sessionmaker it uses the class it is given, and that class's sync one: it gets its own of both.
        chosen = target.kw.get("sync_session_class") or target.class_.sync_session_class
        target.configure(sync_session_class=_hooked_subclass(chosen, queue))
        target.class_ = type(target.class_.__name__, (target.class_,), {})
        _add_methods(target.class_)
    else:
        raise InvalidSetting(setting="install(...)", value=target, allowed=_ALLOWED)


def _hooked_subclass(cls: type[Session], queue: TaskQueue | None) -> type[Session]:
    subclass = type(cls.__name__, (cls,), {})
    hook(subclass)
    if queue is not None:
        set_queue(subclass, queue)
    return subclass


def _async_session_class() -> type[Any]:
    try:
        from sqlalchemy.ext.asyncio import AsyncSession
    except ImportError:  # greenlet is absent, so is every AsyncSession
        return _NoSession
    return AsyncSession


class _NoSession:
    """Stands for AsyncSession where it cannot exist."""


def _add_methods(target: Any) -> None:
    """Add the methods to a class, or to a registry of sessions (as its own attributes)."""
    for method in _METHODS:
        setattr(target, method.__name__, method if isinstance(target, type) else method.__get__(target))
