"""What a session still owes to its tasks, kept per transaction.

One list for the whole session would keep too much when a savepoint rolls back, so each boundary (the root transaction
or one savepoint) has its own `Pending`. A savepoint that commits hands it to the enclosing boundary; one that rolls
back is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection, Table
    from sqlalchemy.orm import Session, SessionTransaction

    from sa_taskqueue.definitions import NewTask
    from sa_taskqueue.queue import TaskQueue


class Place(NamedTuple):
    """A table that a session writes to for the library: a queue's tasks, its outbox or its inbox."""

    queue: TaskQueue
    model: type[Any]
    table: Table


WakeUp = tuple[Place, str]
"""A table, and the name of the queue in it that received work."""

MESSAGES = "messages"
"""What an outbox has in place of the name of a queue."""


def tasks_of(queue: TaskQueue) -> Place:
    """The queue's table of tasks."""
    return Place(queue, queue.model, queue.table)


def outbox_of(queue: TaskQueue) -> Place:
    """The queue's table of messages, known to exist."""
    return Place(queue, cast("type[Any]", queue.outbox), queue.outbox_table)


def inbox_of(queue: TaskQueue) -> Place:
    """The queue's table of what was received, known to exist."""
    return Place(queue, cast("type[Any]", queue.inbox), queue.inbox_table)


@dataclass(slots=True, eq=False)
class KeyedRow:
    """A row with a unique key: inserted by the store after its parents, not by the unit of work."""

    row: Any
    task: NewTask
    queue: TaskQueue
    collected: bool = False
    """Whether the row is out of the unit of work."""

    parents: dict[str, Any] = field(default_factory=dict)
    """The related objects that the row was taken from for the time of the flush, by relationship."""


@dataclass(slots=True, eq=False)
class OrderedMessage:
    """A message that gets its number before the commit; `row` is None where no object was made for it."""

    queue: TaskQueue
    id: UUID
    row: Any = None


@dataclass(slots=True, eq=False)
class Pending:
    """What one boundary owes."""

    unflushed: set[WakeUp] = field(default_factory=set)
    armed: dict[Connection, set[WakeUp]] = field(default_factory=dict)
    keyed: list[KeyedRow] = field(default_factory=list)
    inserted: list[Any] = field(default_factory=list)
    ordered: list[OrderedMessage] = field(default_factory=list)
    committed: bool = False

    def arm(self, connection: Connection, wake_ups: set[WakeUp]) -> None:
        """Remember to wake these queues once what `connection` wrote is committed."""
        self.armed.setdefault(connection, set()).update(wake_ups)

    def merge(self, inner: Pending) -> None:
        """Take over what a released savepoint owed."""
        self.unflushed |= inner.unflushed
        for connection, wake_ups in inner.armed.items():
            self.arm(connection, wake_ups)
        self.keyed += inner.keyed
        self.inserted += inner.inserted
        self.ordered += inner.ordered


@dataclass(slots=True, eq=False)
class UnitOfWork:
    """The `Pending` of each open boundary of a session; in `session.info` from the first flush to the root's end."""

    KEY: ClassVar[str] = "sa_taskqueue"

    boundaries: dict[SessionTransaction, Pending] = field(default_factory=dict)
    connections: dict[Place, Connection] = field(default_factory=dict)
    """To which connection each table was flushed. Never written through: a savepoint may be due on it."""

    checked: set[tuple[Connection, bool]] = field(default_factory=set)
    duplicates: list[Any] = field(default_factory=list)
    """Rows whose key was taken: a parent's collection may bring them into the session again."""

    old_values: dict[tuple[Any, str], Any] = field(default_factory=dict)
    """For the flush that goes on: what changed attributes with change events were, by object state and attribute."""

    collected: bool = False
    """True from our `before_flush` until the rows are written: a keyed row enqueued in between has missed it."""

    def pending(self, transaction: SessionTransaction) -> Pending:
        """Return the `Pending` of a boundary, made when absent."""
        found = self.boundaries.get(transaction)
        if found is None:
            found = self.boundaries[transaction] = Pending()
        return found

    def unflushed_places(self) -> set[Place]:
        """Return the tables with rows that are not flushed yet."""
        return {
            place
            for owed in self.boundaries.values()
            for place in (*(place for place, _ in owed.unflushed), *(tasks_of(keyed.queue) for keyed in owed.keyed))
        }


def unit_of_work(session: Session) -> UnitOfWork:
    """Return the session's `UnitOfWork`, made when absent."""
    found: UnitOfWork | None = session.info.get(UnitOfWork.KEY)
    if found is None:
        found = session.info[UnitOfWork.KEY] = UnitOfWork()
    return found


def open_unit_of_work(session: Session) -> UnitOfWork | None:
    """Return the session's `UnitOfWork`; None when no task was enqueued in this transaction."""
    return session.info.get(UnitOfWork.KEY)


def boundary(session: Session) -> SessionTransaction | None:
    """Return the innermost savepoint, else the root transaction, else None."""
    return session.get_nested_transaction() or session.get_transaction()


def enclosing(savepoint: SessionTransaction) -> SessionTransaction:
    """Return the boundary around a savepoint."""
    outer = savepoint.parent
    while outer is not None and not outer.nested and outer.parent is not None:
        outer = outer.parent
    if outer is None:
        raise ValueError("a root transaction has no enclosing one")
    return outer
