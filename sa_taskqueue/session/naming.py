"""A flush that fails at a table of tasks raises the library's named error; errors of other tables stay SQLAlchemy's.

No session event tells of a failed flush, and an engine's `handle_error` would see every statement of the user's. All
ways to a flush (commit, autoflush, begin_nested) call the public method, which is therefore wrapped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from sa_taskqueue.session.pending import open_unit_of_work
from sa_taskqueue.store.errors import raise_named, writes_to


def name_errors(target: type[Session] | Session) -> None:
    """Wrap the method `flush` of a session class or of one session."""
    flush: Callable[..., None] = target.flush
    one = target if isinstance(target, Session) else None

    @functools.wraps(flush)
    def named_flush(*args: Any, **kwargs: Any) -> None:
        try:
            flush(*args, **kwargs)
        except DBAPIError as error:
            _raise_named(one or args[0], error)
            raise

    setattr(target, "flush", named_flush)  # noqa: B010  mypy knows no assignment to a method


def _raise_named(session: Session, error: DBAPIError) -> None:
    work = open_unit_of_work(session)
    if work is None:
        return
    for place, connection in work.connections.items():
        if writes_to(error, place.table, connection.dialect):
            raise_named(error, place.table, connection.engine)
