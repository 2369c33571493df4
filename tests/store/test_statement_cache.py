"""Each statement is compiled once, whatever the number of rows it is given."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import event

from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement
from tests.store.bench import Bench, pairs


def test_batches_of_any_size_hit_the_compiled_cache(bench: Bench) -> None:
    seen: Counter[str] = Counter()

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if context.compiled is not None:
            seen[context.cache_hit.name] += 1

    def a_round(size: int) -> None:
        bench.add(size * 4)
        claimed = bench.claim(size * 4)
        memory = bench.store.claim_memory()
        with bench.transaction() as connection:
            bench.store.claim(connection, "empty", size, lease=60, by="w", memory=memory)
            bench.store.renew(connection, pairs(claimed), lease=60)
            bench.store.settle(
                connection, [Settlement(task.id, task.epoch, Status.COMPLETED) for task in claimed[:size]]
            )
            rest = claimed[size : 2 * size]
            bench.store.settle(connection, [Settlement(*pair, Status.FAILED, error="{}") for pair in pairs(rest)])
            bench.store.settle(connection, [Settlement(*pair, Status.SCHEDULED, delay=9.0) for pair in pairs(rest)])
            bench.store.release(connection, pairs(claimed[2 * size : 3 * size]))
            bench.store.give_back_unknown(connection, pairs(claimed[3 * size :]), delay=1, fail_after=60)
            bench.store.take_over(connection, size, max_crashes=3)
            bench.store.promote(connection, size)

    a_round(2)
    event.listen(bench.engine, "before_cursor_execute", note)
    try:
        for size in (1, 3, 7):
            a_round(size)
    finally:
        event.remove(bench.engine, "before_cursor_execute", note)

    assert seen["CACHE_HIT"] > 0
    assert set(seen) == {"CACHE_HIT"}
