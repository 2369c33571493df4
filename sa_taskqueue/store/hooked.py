"""The user's statement as the listeners of `do_orm_execute` leave it: they may add criteria, such as the tenant's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from sqlalchemy.orm import ORMExecuteState, Session


def as_hooked(session: Session, statement: Any) -> Any:
    """Let all listeners of the session see the statement as if it was to be executed; it is not."""
    seen: list[Any] = []

    def last(state: ORMExecuteState) -> Any:
        seen.append(state.statement)
        return seen  # an answer, so that SQLAlchemy executes nothing

    event.listen(session, "do_orm_execute", last)
    try:
        session.execute(statement)
    finally:
        event.remove(session, "do_orm_execute", last)
    return seen[0] if seen else statement
