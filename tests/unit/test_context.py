from __future__ import annotations

import logging
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from sa_taskqueue import TaskContext


@dataclass
class Row:
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    name: str = "send"
    queue: str = "mail"
    priority: int = 0
    headers: str | None = '{"trace":"1"}'
    attempt: int = 2
    max_attempts: int = 10
    crashes: int = 0
    epoch: int = 7
    scheduled_at: datetime | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class Worker:
    """What a worker lends to a context."""

    def __init__(self, row: Row) -> None:
        self.opened = 0
        self.extended: list[tuple[str, float]] = []
        self.context = TaskContext(
            row, lost=threading.Event(), open_session=self._open, extend=self._extend, aextend=self._aextend
        )

    def _open(self) -> object:
        self.opened += 1
        return object()

    def _extend(self, seconds: float) -> None:
        self.extended.append(("sync", seconds))

    async def _aextend(self, seconds: float) -> None:
        self.extended.append(("async", seconds))


def test_a_context_tells_what_its_task_is() -> None:
    row = Row()
    context = Worker(row).context
    assert context.task is row
    assert (context.attempt, context.fencing_token, context.headers) == (2, 7, {"trace": "1"})
    assert context.idempotency_key == str(row.id)
    assert Worker(Row(headers=None)).context.headers == {}


def test_the_session_is_opened_at_the_first_use_and_once() -> None:
    worker = Worker(Row())
    assert worker.opened == 0
    sessions: list[object] = [worker.context.session, worker.context.async_session]
    assert sessions[0] is sessions[1]
    assert worker.opened == 1


async def test_the_lease_can_be_extended_from_both_kinds_of_handlers() -> None:
    worker = Worker(Row())
    worker.context.extend(30)
    await worker.context.aextend(60)
    assert worker.extended == [("sync", 30), ("async", 60)]


def test_what_a_handler_logs_carries_its_task(caplog: pytest.LogCaptureFixture) -> None:
    row = Row()
    with caplog.at_level(logging.INFO, "sa_taskqueue.task"):
        Worker(row).context.logger.info("sent")
    (record,) = caplog.records
    assert record.name == "sa_taskqueue.task.send"
    assert record.__dict__["task_id"] == str(row.id)
