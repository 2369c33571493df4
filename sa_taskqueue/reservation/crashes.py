"""Counting crashes where a claim writes no row: attempts are noted in the table of `CrashNoteMixin`, by the batch."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue.exceptions import MissingTable

if TYPE_CHECKING:
    from sa_taskqueue.store import Claimed, CrashNotes, TaskStore


def crash_notes(store: TaskStore, strategy: str) -> CrashNotes:
    """The table of notes; MissingTable where the task queue has none."""
    if store.crash_notes is None:
        feature = f"{strategy}(count_crashes=True)"
        raise MissingTable(feature=feature, mixin="CrashNoteMixin", argument="crash_notes")
    return store.crash_notes


class CrashCount:
    """The notes of one worker that claims in AUTOCOMMIT; without a table it does nothing.

    A claim costs two statements more, a finish one. Every method may be called from every thread.
    """

    def __init__(self, notes: CrashNotes | None, by: str, *, max_crashes: int) -> None:
        self._notes = notes
        self._by = by
        self._max_crashes = max_crashes
        self._guard = threading.Lock()
        self._deleted: dict[UUID, bool] = {}
        """The tasks whose attempt is noted, and whether the transaction of their end has deleted the note."""
        self._left: list[UUID] = []

    def begin(self, connection: Connection, claims: Sequence[Claimed]) -> list[Claimed]:
        """Note the attempts, and return those that may run: a note found on a task is that of a worker that died.

        That is counted as a crash, and the task goes to the end of the line, or becomes FAILED at the limit.
        """
        if self._notes is None or not claims:
            return list(claims)
        fresh = self._notes.count(connection, claims, max_crashes=self._max_crashes)
        ids = [claimed.id for claimed in fresh]
        with self._guard:
            self._deleted.update(dict.fromkeys(ids, False))
        try:
            self._notes.write(connection, fresh, self._by)
        except BaseException:
            # Some may have been written: none of the tasks is run.
            self.let_go(ids)
            raise
        return fresh

    def end(self, connection: Connection, ids: Sequence[UUID], changed: Collection[UUID]) -> None:
        """Delete the notes in the transaction that writes the ends, of which it ``changed`` these."""
        if self._notes is None:
            return
        self._notes.delete_own(connection, ids, self._by)
        with self._guard:
            self._deleted.update((task, True) for task in changed if task in self._deleted)

    def let_go(self, ids: Sequence[UUID]) -> None:
        """The worker has forgotten these tasks: a note that no end of theirs has deleted goes with the next claim."""
        with self._guard:
            self._left += [task for task in ids if not self._deleted.pop(task, True)]

    def clear(self, connection: Connection) -> None:
        """Delete what is left, before the tasks become free for others, who would count it as a crash."""
        with self._guard:
            left, self._left = self._left, []
        if self._notes is not None:
            self._notes.delete_own(connection, left, self._by)
