"""Range handlers: up to N tasks in one transaction, each with an end of its own."""

from __future__ import annotations

from dataclasses import dataclass

from sa_taskqueue.context import BatchContext
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Status
from sa_taskqueue.testing.models import SuiteEffect
from sa_taskqueue.testing.trial import Trial


@dataclass(frozen=True)
class Item:
    """The fields of one task."""

    n: int


def effect(item: Item) -> SuiteEffect:
    """What the handler leaves for the item."""
    return SuiteEffect(note=f"{item.n:02}")


def test_the_work_of_a_range_and_its_completions_are_one_commit(trial: Trial) -> None:
    sizes: list[int] = []

    if trial.database.is_async:

        @trial.queue.task(name="work", batch=5, item=Item)
        async def on_loop(context: BatchContext, items: list[Item]) -> None:
            sizes.append(len(items))
            context.async_session.add_all(map(effect, items))

    else:

        @trial.queue.task(name="work", batch=5, item=Item)
        def in_thread(context: BatchContext, items: list[Item]) -> None:
            sizes.append(len(items))
            context.session.add_all(map(effect, items))

    trial.put_many(trial.queue.named("work"), 20)
    worker = trial.drain(queues={"default": 1})
    assert trial.effects() == [f"{n:02}" for n in range(20)]
    assert trial.statuses() == {Status.COMPLETED: 20}
    assert worker.counts.completed == sum(sizes) == 20
    # RowLock holds as many as it is told to, which is one.
    assert max(sizes) == (1 if trial.strategy.name == "row-lock" else 5)


def test_a_bad_item_neither_spoils_nor_repeats_the_others(trial: Trial) -> None:
    def refuse(item: Item) -> None:
        if item.n == 3:
            raise ValueError("three")

    if trial.database.is_async:

        @trial.queue.task(name="work", batch=10, item=Item, retry=never)
        async def on_loop(context: BatchContext, items: list[Item]) -> None:
            for item in items:
                async with context.savepoint(item):
                    context.async_session.add(effect(item))
                    await context.async_session.flush()
                    refuse(item)

    else:

        @trial.queue.task(name="work", batch=10, item=Item, retry=never)
        def in_thread(context: BatchContext, items: list[Item]) -> None:
            for item in items:
                with context.savepoint(item):
                    context.session.add(effect(item))
                    context.session.flush()
                    refuse(item)

    tasks = trial.put_many(trial.queue.named("work"), 6)
    trial.drain(queues={"default": 1})
    assert trial.effects() == ["00", "01", "02", "04", "05"]
    assert trial.statuses() == {Status.COMPLETED: 5, Status.FAILED: 1}
    assert trial.error(tasks[3])["message"] == "three"


def test_an_error_of_the_whole_range_is_undone_and_each_task_ends_by_its_own(trial: Trial) -> None:
    if trial.database.is_async:

        @trial.queue.task(name="work", batch=10, item=Item, retry=fixed(0, max_attempts=3))
        async def on_loop(context: BatchContext, items: list[Item]) -> None:
            context.async_session.add_all(map(effect, items))
            await context.async_session.flush()
            if 3 in {item.n for item in items}:
                raise ValueError("three")

    else:

        @trial.queue.task(name="work", batch=10, item=Item, retry=fixed(0, max_attempts=3))
        def in_thread(context: BatchContext, items: list[Item]) -> None:
            context.session.add_all(map(effect, items))
            context.session.flush()
            if 3 in {item.n for item in items}:
                raise ValueError("three")

    tasks = trial.put_many(trial.queue.named("work"), 6)
    trial.drain(queues={"default": 1})
    assert trial.effects() == ["00", "01", "02", "04", "05"]
    assert [row.status for row in trial.rows(tasks)] == [
        *[Status.COMPLETED] * 3,
        Status.FAILED,
        *[Status.COMPLETED] * 2,
    ]
    assert trial.row(tasks[3]).attempt == 3
