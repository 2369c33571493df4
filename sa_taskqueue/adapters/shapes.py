"""The frozen shapes in which a database can take rows for itself.

Two questions are asked of an adapter. *Take*: pick rows by an order and a limit, and change them (claim, take over,
promote). *Held*: change rows that the caller names by ``(id, epoch)`` (settle, renew, release). Every answer is one of
the shapes here; the store knows how to run each and never asks which database it talks to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from sqlalchemy import Column, ColumnElement, Delete, Select, Table, Update
from sqlalchemy.sql import Executable
from sqlalchemy.types import TypeEngine

from sa_taskqueue.states import Status

AnySelect: TypeAlias = "Select[*tuple[Any, ...]]"
"""A SELECT of any columns; quoted, because SQLAlchemy 2.0's Select takes one argument."""

Assignments = Sequence[tuple[Column[Any], ColumnElement[Any]]]
"""What an UPDATE sets, in this order: MySQL lets a later assignment see an earlier one."""

Columns = Sequence[ColumnElement[Any]]
"""The columns to show, each under the key of the table's column."""

AssignFrom = Callable[[Mapping[str, ColumnElement[Any]]], Assignments]
"""Makes the assignments from the inputs of a row: bind parameters, or columns of an unnested array."""

ChangeFrom = Callable[[Any], Assignments]
"""Makes the assignments for a row that is there already from the columns of the one that should be inserted."""

Inputs = Mapping[str, TypeEngine[Any]]
"""The values that each held row brings along, by parameter name."""


@dataclass(frozen=True, slots=True)
class ReturningClaim:
    """One statement picks, changes (or only locks) and returns the rows, in no particular order."""

    statement: Executable


@dataclass(frozen=True, slots=True)
class LockThenUpdate:
    """Two statements of one transaction: read and lock, then change by primary key (expanding parameter ``ids``).

    The read returns the values as they will be after the update.
    """

    lock: AnySelect
    change: Update | Delete


@dataclass(frozen=True, slots=True)
class CompareAndSet:
    """Candidates are read without a lock; each is changed only if it still is as it was read.

    The read ends with ``old_epoch`` and ``old_status``; the change takes these and ``old_id``.
    """

    candidates: AnySelect
    change: Update | Delete


@dataclass(frozen=True, slots=True)
class FetchThenUpdate:
    """Where rows lock as they are fetched: a cursor without a limit, of which exactly ``at_most`` rows are fetched.

    It gives the ids. Under their locks ``read`` takes these ``ids``, with the values as they will be after the update:
    a cursor may give rows as they were before they were locked, so it leaves out what has changed. The rest is changed
    by primary key (``ids``), unless it is only to be locked. ``bound`` keeps the driver's cursor from fetching ahead.
    """

    cursor: AnySelect
    read: AnySelect
    change: Update | Delete | None
    bound: Callable[[Any, int], None]


@dataclass(frozen=True, slots=True)
class ReadThenLock:
    """``candidates`` are read without a lock, ``window`` at a time behind the first ``passed``; ``lock`` takes some.

    The read gives id and priority, the lock takes the ``ids`` of one priority, up to ``at_most`` of them.
    """

    candidates: AnySelect
    lock: AnySelect
    window: int


TakeShape = ReturningClaim | LockThenUpdate | CompareAndSet | FetchThenUpdate | ReadThenLock


@dataclass(frozen=True, slots=True)
class HeldReturning:
    """One statement over the arrays ``ids``, ``epochs`` and one array per input; returns the ids it changed."""

    statement: Executable
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldLocked:
    """Lock and read ``id, epoch, status`` of ``ids``; what is still held is changed by key, per equal inputs.

    In parts of at most ``longest`` ids, where the server takes no longer lists.
    """

    lock: AnySelect
    change: Update | Delete
    inputs: tuple[str, ...]
    by_list: bool = True
    """Whether the change takes ``ids``; else it is sent once for each ``old_id``."""
    longest: int | None = None
    status: StrEnum = Status.RUNNING
    """What a row that is still held says."""


@dataclass(frozen=True, slots=True)
class HeldOneByOne:
    """One guarded change per row (``old_id``, ``old_epoch``); its row count tells whether the row was still held."""

    change: Update | Delete
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldTogether:
    """One guarded change of ``ids`` for each ``old_epoch`` and equal inputs; returns the ids it changed.

    For a database where nobody else can write meanwhile, so that there is nothing to lock first.
    """

    change: Executable
    inputs: tuple[str, ...]


HeldShape = HeldReturning | HeldLocked | HeldTogether | HeldOneByOne


@dataclass(frozen=True, slots=True)
class KeyTableShape:
    """A table for the time of a few statements, with the keys of the rows that these are all about.

    ``create`` makes it from a SELECT without rows; ``among`` restricts an UPDATE or DELETE to the rows whose columns
    are equal to the table's.
    """

    create: Callable[[Table, AnySelect], Executable]
    drop: Callable[[Table], str]
    among: Callable[[Any, Sequence[tuple[Column[Any], Column[Any]]]], Any]
    drops_first: bool
    """Whether one may be left from before: by a rollback of its DROP."""
    locks: bool
    """Whether the read of the keys locks their rows."""
    returns_inserted: bool
    """Whether INSERT returns the keys of the new rows."""
    in_two_phase: bool
    """Whether a transaction that is to be prepared may use such a table."""


@dataclass(frozen=True, slots=True)
class PatienceShape:
    """For how long the statements of a transaction wait for a lock: ``read`` the setting, and ``set`` it to one."""

    read: Executable
    set: Executable
    """Takes ``patience``."""
    of_seconds: Callable[[int], Any]
    """A number of seconds as a value of the setting."""


@dataclass(frozen=True, slots=True)
class SessionLockShape:
    """Locks of a connection, by keys made of names; ``pack`` makes the parameter ``packed`` of many keys."""

    session: AnySelect
    """The connection's own number and the schema in which an unqualified table is found."""
    take: AnySelect
    """Of ``packed``: key, whether it was got (without waiting), and the number of the connection that got it."""
    free: AnySelect
    """Frees ``packed``."""
    taken: AnySelect
    """Those of ``packed`` that the connection ``session`` holds."""
    key: Callable[[str], Any]
    pack: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class ReservationShape:
    """A table of reservations: ids, each under a token until a moment. ``packed`` is made of the ids by ``pack``."""

    reserve: Executable
    """Inserts ``packed`` under ``token`` for ``lease`` seconds, or takes over what has expired."""
    renew: Executable
    """Prolongs ``ids`` where they are under ``tokens``, skipping what is locked."""
    remove: Executable
    """Removes ``ids`` where they are under ``tokens``."""
    mine: AnySelect
    """Which of ``ids`` are under one of ``tokens``."""
    returns: bool
    """Whether ``reserve`` and ``renew`` return the ids they changed; else they are read back by ``mine``."""
    transactional: bool
    """Whether the removal can be part of the finish's transaction."""
    pack: Callable[[Sequence[Any]], Any]
