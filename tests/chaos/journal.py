"""The database's own journal of the task table: triggers write it, so that it holds what was committed and no more.

A process that is killed cannot tell what it had just committed, and one that is alive may believe a commit that never
happened. Entries of one task are in order: the row's lock is held from the change to the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Engine, select

from sa_taskqueue.adapters.registry import adapter_for
from tests.chaos.history import TERMINAL, Event, Kind
from tests.chaos.models import ChaosEffect, ChaosTask, JournalEntry

TASK = ChaosTask.__tablename__
JOURNAL = JournalEntry.__tablename__
_COLUMNS = "task_id, old_status, new_status, old_epoch, new_epoch, crashed, holder, until, at"


def install_journal(engine: Engine) -> None:
    """Create the two triggers on the empty task table."""
    with engine.begin() as connection:
        clock = adapter_for(connection.dialect).clock()
        now = str(clock.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})).replace("%%", "%")
        into = f"INSERT INTO {JOURNAL} ({_COLUMNS})"
        inserted = f"{into} VALUES (NEW.id, NULL, NEW.status, NEW.epoch, NEW.epoch, 0, NULL, NULL, {now});"
        updated = (
            f"{into} VALUES (NEW.id, OLD.status, NEW.status, OLD.epoch, NEW.epoch, "
            f"NEW.crashes - OLD.crashes, NEW.reserved_by, NEW.reserved_until, {now});"
        )
        for happened, body in (("INSERT", inserted), ("UPDATE", updated)):
            for statement in _trigger(connection.dialect.name, happened, body):
                connection.exec_driver_sql(statement)


def _trigger(dialect: str, happened: str, body: str) -> Iterator[str]:
    name = f"chaos_{happened.lower()}"
    if dialect == "postgresql":
        yield (
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {body} RETURN NULL; END $$"
        )
        yield f"CREATE TRIGGER {name} AFTER {happened} ON {TASK} FOR EACH ROW EXECUTE FUNCTION {name}()"
    elif dialect == "sqlite":
        yield f"CREATE TRIGGER {name} AFTER {happened} ON {TASK} BEGIN {body} END"
    else:
        yield f"CREATE TRIGGER {name} AFTER {happened} ON {TASK} FOR EACH ROW {body.rstrip(';')}"


def read_events(engine: Engine, *, raised_at_end: bool = False) -> list[Event]:
    """What was committed, as events for the checker.

    With ``raised_at_end`` a handler knew the epoch before the one under which it completed its task.
    """
    with engine.connect() as connection:
        entries = connection.execute(select(JournalEntry.__table__).order_by(JournalEntry.id)).all()
        effects = connection.execute(select(ChaosEffect.task_id, ChaosEffect.epoch)).all()
    events = [event for entry in entries for event in _events(entry)]
    events += [Event(Kind.EFFECT, str(effect.task_id), epoch=effect.epoch + raised_at_end) for effect in effects]
    return events


def _events(entry: Any) -> list[Event]:
    """A finish from NEW is that of a strategy that writes nothing at the claim: both happened in one commit."""
    if entry.old_status == "NEW" and entry.new_epoch > entry.old_epoch and entry.new_status != "RUNNING":
        task, at, epoch = str(entry.task_id), entry.at.timestamp(), entry.new_epoch
        claim = Event(Kind.CLAIM, task, epoch=epoch, at=at, until=at)
        if entry.new_status in TERMINAL:
            return [claim, Event(Kind.FINISH, task, epoch=epoch, at=at, status=entry.new_status)]
        return [claim, Event(Kind.PUT_BACK, task, epoch=epoch, at=at, crashed=entry.crashed > 0)]
    event = _event(entry)
    return [] if event is None else [event]


def _event(entry: Any) -> Event | None:
    task, at, crashed = str(entry.task_id), entry.at.timestamp(), entry.crashed > 0
    until = entry.until.timestamp() if entry.until is not None else 0.0
    if entry.old_status is None:
        return Event(Kind.STORED, task, at=at)
    if entry.new_status == "RUNNING":
        kind = Kind.RENEW if entry.new_epoch == entry.old_epoch else Kind.CLAIM
        return Event(kind, task, epoch=entry.new_epoch, at=at, until=until)
    if entry.new_status in TERMINAL:
        return Event(Kind.FINISH, task, epoch=entry.old_epoch, at=at, status=entry.new_status, crashed=crashed)
    if entry.old_status == "RUNNING":
        return Event(Kind.PUT_BACK, task, epoch=entry.old_epoch, at=at, crashed=crashed)
    return None  # promoted


def refusals(events: Iterable[Event], ended: Iterable[tuple[str, int]]) -> list[Event]:
    """The finishes that were tried and changed nothing: the handler ended, but its task had been taken over before.

    ``ended`` holds the task and the epoch of every handler that ran to its end in a process that lived on.
    """
    taken_over = {(event.task, event.epoch) for event in events if event.kind is Kind.PUT_BACK and event.crashed}
    return [
        Event(Kind.FINISH, task, epoch=epoch, accepted=False) for task, epoch in ended if (task, epoch) in taken_over
    ]
