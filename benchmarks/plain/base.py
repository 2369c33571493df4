"""What every plain queue can do: fill the table, claim, and finish, on one driver connection."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Engine

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.ids import new_id

QUEUE = "bench"
NAME = "benchmarks.noop"
NOTE = "x" * 69
"""Makes a body of about 100 bytes, so that rates can be compared with the figures of other systems."""
CHUNK = 5_000


def body(number: int) -> str:
    """The arguments of the benchmarks' one task as JSON."""
    return json.dumps({"order_id": number, "note": NOTE})


@dataclass(frozen=True)
class Filling:
    """Rows to store before a run: how many, in which state, and how urgent (smaller first)."""

    count: int
    status: str = "NEW"
    priority: int = 0
    seconds_ahead: int = 0
    """How far ahead of the clock the row is due (``SCHEDULED``) or reserved until (``RUNNING``)."""
    queue: str = QUEUE


class PlainQueue(ABC):
    """Plain SQL over the driver's own connection, taken from ``engine``; the caller closes it."""

    COLUMNS = "id, name, queue, priority, status, body, attempt, max_attempts, crashes, epoch"

    def __init__(self, engine: Engine, table: str) -> None:
        self.table = table
        with engine.connect() as connection:
            self._adapter = adapter_for(connection.dialect)
        self._dialect = engine.dialect
        self.clock = self._text(self._adapter.clock())
        self._fairy = engine.raw_connection()
        self.connection: Any = self._fairy.driver_connection
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Set what the driver's connection needs before the first statement."""

    @abstractmethod
    def claim(self, limit: int) -> list[Any]:
        """Reserve up to ``limit`` tasks and commit; their keys. The bodies are fetched too, as a worker needs them."""

    @abstractmethod
    def complete(self, keys: Sequence[Any]) -> None:
        """Mark the tasks ``COMPLETED`` and commit."""

    @abstractmethod
    def delete(self, keys: Sequence[Any]) -> None:
        """Delete the tasks and commit."""

    @abstractmethod
    def insert(self, filling: Filling) -> None:
        """Store the rows by the fastest plain way of the driver and commit."""

    @abstractmethod
    def settle_down(self) -> None:
        """Let the server do now what it would otherwise do during the run: statistics, checkpoint."""

    def drain(self, batch: int, *, delete: bool) -> int:
        """Claim and finish in batches until nothing is left; the number of tasks."""
        finish = self.delete if delete else self.complete
        done = 0
        while keys := self.claim(batch):
            finish(keys)
            done += len(keys)
        return done

    def close(self) -> None:
        self._fairy.close()

    def after(self, seconds: int) -> str:
        """SQL for the database's clock plus ``seconds``."""
        return self._text(self._adapter.after(seconds))

    def _text(self, expression: ColumnElement[Any]) -> str:
        return str(expression.compile(dialect=self._dialect, compile_kwargs={"literal_binds": True}))

    def key(self, value: uuid.UUID) -> Any:
        """The primary key as the driver takes it."""
        return value.bytes

    def rows(self, filling: Filling) -> Iterator[list[tuple[Any, ...]]]:
        """The values of ``COLUMNS``, in chunks. Each body is encoded anew, as it would be for real arguments."""
        head = (NAME, filling.queue, filling.priority, filling.status)
        for start in range(0, filling.count, CHUNK):
            numbers = range(start, min(start + CHUNK, filling.count))
            yield [(self.key(new_id()), *head, body(number), 0, 10, 0, 0) for number in numbers]

    def late_columns(self, filling: Filling) -> str:
        """The assignments that put filled rows into their state, where the defaults do not."""
        if filling.status == "SCHEDULED":
            return f"scheduled_at = {self.after(filling.seconds_ahead)}"
        if filling.status == "RUNNING":
            return f"reserved_until = {self.after(filling.seconds_ahead)}, reserved_by = 'elsewhere'"
        return f"finished_at = {self.clock}" if filling.status == "COMPLETED" else ""
