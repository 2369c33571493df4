"""A whole batch that is to run again, after a savepoint has decided about one of its items."""

from __future__ import annotations

from typing import Any

from sa_taskqueue import BatchContext, Cancel, Retry, TaskQueue, Worker, fixed
from sa_taskqueue.states import Status
from tests.models import Effect
from tests.reservation.conftest import reserved
from tests.worker.support import Database, drain
from tests.worker.test_range import Ref, queue, strategy

__all__ = ["queue", "reserved", "strategy"]


def test_a_retry_of_all_undoes_what_a_savepoint_had_kept(
    engine: Any, db: Database, queue: TaskQueue, strategy: Any
) -> None:
    """Kept for one item, the others' work would be committed and done again."""
    calls: list[list[int]] = []

    @queue.task(name="work", batch=10, item=Ref, retry=fixed(0, max_attempts=3))
    def work(context: BatchContext, items: list[Ref]) -> Retry | None:
        calls.append([item.n for item in items])
        first = len(calls) == 1
        for item in items:
            with context.savepoint(item):
                context.session.add(Effect(task_id=context.idempotency_key(item), note=str(item.n)))
                context.session.flush()
                if first and item.n == 0:
                    raise Cancel("not this one")
        return Retry(after=0) if first else None

    ids = db.put_many(queue.named("work"), 3)
    drain(Worker(queue, engine, queues={"default": 1}, drain=True, reservation=strategy))
    assert sorted(calls[0]) == [0, 1, 2]
    assert sorted(db.effects()) == ["0", "1", "2"]
    assert {row.status for row in db.rows(ids)} == {Status.COMPLETED}
