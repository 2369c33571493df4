"""A handler's session: its work and the completion of its task are one commit, or neither is."""

from __future__ import annotations

from sa_taskqueue.context import TaskContext
from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Snooze, Status
from sa_taskqueue.testing import requires
from sa_taskqueue.testing.models import SuiteEffect
from sa_taskqueue.testing.trial import Trial
from sa_taskqueue.testing.waiting import eventually


async def add(context: TaskContext, note: str) -> None:
    """One effect, flushed."""
    context.async_session.add(SuiteEffect(note=note))
    await context.async_session.flush()


def test_effect_and_completion_are_one_commit(trial: Trial) -> None:
    if trial.database.is_async:

        @trial.queue.task(name="work")
        async def on_loop(context: TaskContext, n: int) -> None:
            await add(context, f"{n:02}")

    else:

        @trial.queue.task(name="work")
        def in_thread(context: TaskContext, n: int) -> None:
            context.session.add(SuiteEffect(note=f"{n:02}"))

    trial.put_many(trial.queue.named("work"), 20)
    worker = trial.drain()
    assert trial.effects() == [f"{n:02}" for n in range(20)]
    assert trial.statuses() == {Status.COMPLETED: 20}
    assert worker.counts.completed == 20


def test_commit_and_rollback_in_the_handler_move_savepoints(trial: Trial) -> None:
    if trial.database.is_async:

        @trial.queue.task(name="work")
        async def on_loop(context: TaskContext) -> None:
            await add(context, "first")
            await context.async_session.commit()
            await add(context, "dropped")
            await context.async_session.rollback()
            await add(context, "last")

    else:

        @trial.queue.task(name="work")
        def in_thread(context: TaskContext) -> None:
            context.session.add(SuiteEffect(note="first"))
            context.session.commit()
            context.session.add(SuiteEffect(note="dropped"))
            context.session.rollback()
            context.session.add(SuiteEffect(note="last"))

    trial.put(trial.queue.named("work"))
    trial.drain()
    assert trial.effects() == ["first", "last"]


def test_a_failure_rolls_the_work_back_and_is_recorded(trial: Trial) -> None:
    if trial.database.is_async:

        @trial.queue.task(name="work", retry=fixed(0))
        async def on_loop(context: TaskContext) -> None:
            await add(context, f"attempt {context.attempt}")
            await context.async_session.commit()
            if context.attempt == 1:
                raise ValueError("after the commit of its own")

    else:

        @trial.queue.task(name="work", retry=fixed(0))
        def in_thread(context: TaskContext) -> None:
            context.session.add(SuiteEffect(note=f"attempt {context.attempt}"))
            context.session.commit()
            if context.attempt == 1:
                raise ValueError("after the commit of its own")

    task = trial.put(trial.queue.named("work"))
    trial.drain()
    assert trial.effects() == ["attempt 2"]
    assert (trial.row(task).status, trial.row(task).attempt) == (Status.COMPLETED, 2)


def test_a_snooze_keeps_the_work(trial: Trial) -> None:
    if trial.database.is_async:

        @trial.queue.task(name="work")
        async def on_loop(context: TaskContext) -> None:
            await add(context, "kept")
            raise Snooze(3600)

    else:

        @trial.queue.task(name="work")
        def in_thread(context: TaskContext) -> None:
            context.session.add(SuiteEffect(note="kept"))
            raise Snooze(3600)

    task = trial.put(trial.queue.named("work"))
    trial.drain()
    assert trial.effects() == ["kept"]
    assert trial.row(task).status == Status.SCHEDULED


def test_tasks_that_a_handler_enqueues_are_stored_with_its_completion(trial: Trial) -> None:
    @trial.queue.task
    def second() -> None: ...

    def enqueue(context: TaskContext) -> None:
        context._opened().enqueue(second)  # noqa: SLF001  of either kind of session
        if context.attempt == 1:
            raise ValueError("the first is rolled back")

    if trial.database.is_async:

        @trial.queue.task(name="work", retry=fixed(0))
        async def on_loop(context: TaskContext) -> None:
            enqueue(context)

    else:

        @trial.queue.task(name="work", retry=fixed(0))
        def in_thread(context: TaskContext) -> None:
            enqueue(context)

    trial.put(trial.queue.named("work"))
    with trial.running(poll_max=0.2):
        eventually(lambda: trial.statuses() == {Status.COMPLETED: 2})


@requires.concurrent_writers
def test_a_task_that_was_lost_meanwhile_rolls_the_work_back(trial: Trial) -> None:
    """As after another one has ended it, or an operator has acted on it."""
    if trial.strategy.name == "row-lock":
        return  # nobody can write the row before the end of the transaction that does the work

    if trial.database.is_async:

        @trial.queue.task(name="work")
        async def on_loop(context: TaskContext) -> None:
            await add(context, "never")
            await trial.aside(end_elsewhere, context)

    else:

        @trial.queue.task(name="work")
        def in_thread(context: TaskContext) -> None:
            context.session.add(SuiteEffect(note="never"))
            context.session.flush()
            end_elsewhere(context)

    def end_elsewhere(context: TaskContext) -> None:
        trial.write(context.task.id, status=Status.CANCELLED, epoch=context.task.epoch + 1)

    task = trial.put(trial.queue.named("work"))
    worker = trial.drain()
    assert trial.effects() == []
    assert trial.row(task).status == Status.CANCELLED
    assert (worker.counts.completed, worker.counts.lost) == (0, 1)


@requires.concurrent_writers
def test_a_handlers_transaction_is_at_the_level_of_the_adapter(trial: Trial) -> None:
    levels: list[str] = []

    if trial.database.is_async:

        @trial.queue.task(name="work", retry=never)
        async def on_loop(context: TaskContext) -> None:
            connection = await context.async_session.connection()
            levels.append(await connection.get_isolation_level())

    else:

        @trial.queue.task(name="work", retry=never)
        def in_thread(context: TaskContext) -> None:
            levels.append(context.session.connection().get_isolation_level())

    trial.put(trial.queue.named("work"))
    trial.drain()
    assert levels == [trial.database.adapter.worker_isolation]
