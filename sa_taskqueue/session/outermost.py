"""Wake-ups after the outermost COMMIT, and NOTIFY inside the transaction where the queue asks for it.

`after_commit` also fires for a released savepoint, and for a session that has joined a transaction of its caller's:
there the rows are not committed yet, which only the connection can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sa_taskqueue.runtime import wakeups
from sa_taskqueue.session.pending import Pending, UnitOfWork, WakeUp, boundary
from sa_taskqueue.store.notify import notify

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

_left_to_owner: WeakKeyDictionary[Connection, set[WakeUp]] = WeakKeyDictionary()


def arm_flushed(session: Session, work: UnitOfWork) -> None:
    """Arm the wake-ups of the rows just flushed; they are sent after the COMMIT.

    NOTIFY is sent at the first flush of each boundary: a savepoint's rollback takes back what was sent in it, and what
    it had armed. PostgreSQL refuses to prepare a two-phase transaction that has notified.
    """
    current = boundary(session)
    owed = work.boundaries.get(current) if current is not None else None
    if owed is None or not owed.unflushed:
        return
    flushed, owed.unflushed = owed.unflushed, set()
    for place in {place for place, _ in flushed}:
        connection = work.connections[place]
        new = {wake_up for wake_up in flushed if wake_up[0] == place} - owed.armed.get(connection, set())
        owed.arm(connection, new)
        if new and place.queue.notify and not session.twophase:
            names = {name for _, name in new}
            notify(session.connection(bind_arguments={"mapper": place.model}), place.table, names)


def wake(owed: Pending) -> None:
    """Send the wake-ups of a session whose root transaction has committed."""
    for connection, wake_ups in owed.armed.items():
        if connection.in_transaction():
            _left_to_owner.setdefault(connection, set()).update(wake_ups)
        else:
            _send(connection, wake_ups)


def wake_after_owner(connection: Connection) -> None:
    """Send the wake-ups that sessions joined to the connection's transaction have left to its owner.

    For the owner, after its COMMIT; without it, polling finds the tasks.
    """
    wake_ups = _left_to_owner.pop(connection, None)
    if wake_ups:
        _send(connection, wake_ups)


def forget_after_owner(connection: Connection) -> None:
    """Drop the wake-ups left on a connection whose owner has rolled back."""
    _left_to_owner.pop(connection, None)


def _send(connection: Connection, wake_ups: set[WakeUp]) -> None:
    for place, name in wake_ups:
        wakeups.notify(connection.engine.url, place.table, name)
