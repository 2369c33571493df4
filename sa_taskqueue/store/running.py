"""Runs the shapes that an adapter answers with: the one place that knows one statement from two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.sql import Executable

from sa_taskqueue.adapters.shapes import (
    CompareAndSet,
    FetchThenUpdate,
    HeldLocked,
    HeldOneByOne,
    HeldReturning,
    HeldShape,
    HeldTogether,
    LockThenUpdate,
    ReadThenLock,
    ReturningClaim,
    TakeShape,
)
from sa_taskqueue.store.fetching import fetch_exactly, in_parts
from sa_taskqueue.store.rows import Pair

Values = Mapping[str, Any]

_NO_VALUES: Values = MappingProxyType({})


def take(connection: Connection, shape: TakeShape, values: Values) -> Sequence[Any]:
    """The rows taken, as they are after the change; the first column is the id as the driver gives it."""
    match shape:
        case ReturningClaim(statement):
            return connection.execute(statement, values).fetchall()
        case LockThenUpdate(lock, change):
            rows = connection.execute(lock, values).fetchall()
            if rows:
                connection.execute(change, {**values, "ids": [row[0] for row in rows]})
            return rows
        case CompareAndSet(candidates, change):
            found = connection.execute(candidates, values).fetchall()
            return [row[:-2] for row in found if _won(connection, change, values, row)]
        case FetchThenUpdate(cursor, read, change, bound):
            found = fetch_exactly(connection, cursor, values, rows=values["at_most"], bound=bound)
            if not found:
                return []
            rows = connection.execute(read, {**values, "ids": [row[0] for row in found]}).fetchall()
            if rows and change is not None:
                connection.execute(change, {**values, "ids": [row[0] for row in rows]})
            return rows
        case ReadThenLock():
            return _lock_candidates(connection, shape, values)


def _lock_candidates(connection: Connection, shape: ReadThenLock, values: Values) -> Sequence[Any]:
    """The first that nobody holds; what is held stands in front of them, so the next window may have to be read."""
    passed = 0
    while True:
        found = connection.execute(shape.candidates, {**values, "at_most": shape.window, "passed": passed}).fetchall()
        for _, group in groupby(found, key=itemgetter(1)):
            rows = connection.execute(shape.lock, {**values, "ids": [row[0] for row in group]}).fetchall()
            if rows:
                return rows
        if len(found) < shape.window:
            return []
        passed += len(found)


def change_held(
    connection: Connection,
    shape: HeldShape,
    held: Sequence[Pair],
    inputs: Sequence[tuple[Any, ...]] | None = None,
    values: Values = _NO_VALUES,
) -> set[UUID]:
    """Change what is still held; ``inputs`` has one tuple per pair, in the order of the shape's inputs."""
    if not held:
        return set()
    if inputs is None:
        inputs = [()] * len(held)
    match shape:
        case HeldReturning(statement, names):
            columns = zip(*inputs, strict=True) if names else ()
            arrays = {name: list(column) for name, column in zip(names, columns, strict=True)}
            ids = [task for task, _ in held]
            epochs = [epoch for _, epoch in held]
            return set(_ids(connection, statement, {**values, **arrays, "ids": ids, "epochs": epochs}))
        case HeldLocked(longest=longest):
            return {
                task
                for part in in_parts(sorted(zip(held, inputs, strict=True), key=itemgetter(0)), longest)
                for task in _change_locked(connection, shape, part, values)
            }
        case HeldTogether(change, names):
            return {
                task
                for (epoch, own), ids in _alike(held, inputs).items()
                for task in _ids(
                    connection, change, {**values, **dict(zip(names, own, strict=True)), "ids": ids, "old_epoch": epoch}
                )
            }
        case HeldOneByOne(change, names):
            return {
                pair[0]
                for pair, own in sorted(zip(held, inputs, strict=True))
                if _changed_one(connection, change, pair, {**values, **dict(zip(names, own, strict=True))})
            }


def _change_locked(
    connection: Connection, shape: HeldLocked, held: Sequence[tuple[Pair, tuple[Any, ...]]], values: Values
) -> set[UUID]:
    rows = connection.execute(shape.lock, {"ids": [task for (task, _), _ in held]}).fetchall()
    current = {task: epoch for task, epoch, status in rows if status == shape.status}
    groups: defaultdict[tuple[Any, ...], list[UUID]] = defaultdict(list)
    for (task, epoch), own in held:
        if current.get(task) == epoch:
            groups[own].append(task)
    for own, ids in groups.items():
        parameters = {**values, **dict(zip(shape.inputs, own, strict=True))}
        if shape.by_list:
            connection.execute(shape.change, {**parameters, "ids": ids})
        else:
            connection.execute(shape.change, [{**parameters, "old_id": each} for each in ids])
    return {task for ids in groups.values() for task in ids}


def _alike(held: Sequence[Pair], inputs: Sequence[tuple[Any, ...]]) -> Mapping[tuple[int, tuple[Any, ...]], list[UUID]]:
    """The ids of equal epoch and inputs."""
    groups: defaultdict[tuple[int, tuple[Any, ...]], list[UUID]] = defaultdict(list)
    for (task, epoch), own in zip(held, inputs, strict=True):
        groups[epoch, own].append(task)
    return groups


def _ids(connection: Connection, change: Executable, values: Values) -> list[UUID]:
    """What the change returned; `scalars()` would fetch row by row."""
    return [row[0] for row in connection.execute(change, values).fetchall()]


def _changed_one(connection: Connection, change: Any, pair: Pair, values: Values) -> bool:
    task, epoch = pair
    return connection.execute(change, {**values, "old_id": task, "old_epoch": epoch}).rowcount == 1


def _won(connection: Connection, change: Any, values: Values, row: Any) -> bool:
    old = {"old_id": row[0], "old_epoch": row.old_epoch, "old_status": row.old_status}
    return connection.execute(change, {**values, **old}).rowcount == 1
