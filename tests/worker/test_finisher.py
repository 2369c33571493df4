"""How ends are written: together, once, and a row that is refused harms only itself."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy.exc import DataError, OperationalError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.ids import new_id
from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, Settlement
from sa_taskqueue.worker.counts import Counts
from sa_taskqueue.worker.ending import Committed, Ending
from sa_taskqueue.worker.finisher import Finisher, UnknownNames
from sa_taskqueue.worker.held import HeldTask, HeldTasks


class FakeReservation:
    """Records what it is asked; `refuse` says which settlements the database will not take, `gone` what is not held."""

    def __init__(self) -> None:
        self.settled: list[list[Settlement]] = []
        self.released: list[tuple[UUID, float]] = []
        self.unknown: list[UUID] = []
        self.gone: set[UUID] = set()
        self.forgotten: list[UUID] = []
        self.refuse: Callable[[Settlement], bool] = lambda settlement: False

    def let_go(self, ids: Sequence[UUID]) -> None:
        self.forgotten += ids

    def settle(self, _: object, settlements: Sequence[Settlement]) -> set[UUID]:
        if any(self.refuse(settlement) for settlement in settlements):
            raise DataError("UPDATE", {}, Exception("no such text"))
        self.settled.append(list(settlements))
        changed = {settlement.id for settlement in settlements} - self.gone
        self.gone |= changed
        return changed

    def release(self, _: object, held: Sequence[tuple[UUID, int]], *, delay: float = 0.0) -> set[UUID]:
        self.released += [(task_id, delay) for task_id, _ in held]
        return {task_id for task_id, _ in held}

    def give_back_unknown(
        self, _: object, held: Sequence[tuple[UUID, int]], *, delay: float, fail_after: float
    ) -> set[UUID]:
        self.unknown += [task_id for task_id, _ in held]
        return {task_id for task_id, _ in held}


class FakeLane:
    """Runs operations without a database; each of `answers` is raised instead of, or after, one operation."""

    def __init__(self) -> None:
        self.before: list[Exception] = []
        self.after: list[Exception] = []

    async def run(self, operation: Callable[..., Any], *args: Any) -> Any:
        await asyncio.sleep(0)
        if self.before:
            raise self.before.pop(0)
        result = operation(None, *args)
        if self.after:
            raise self.after.pop(0)
        return result

    run_repeatable = run


class Bench:
    """A finisher between fakes."""

    def __init__(self, *, batch: int = 100, more_expected: bool = False) -> None:
        self.lane, self.reservation = FakeLane(), FakeReservation()
        self.held, self.counts = HeldTasks(), Counts()
        self.more_expected = more_expected
        self.finisher = Finisher(
            cast("Any", self.lane),
            cast("Any", self.reservation),
            self.held,
            self.counts,
            batch=batch,
            unknown=UnknownNames(15.0, 3600.0),
            classify=lambda error: ErrorKind.BUSY if isinstance(error, OperationalError) else ErrorKind.OTHER,
            more_expected=lambda: self.more_expected,
        )

    def task(self) -> HeldTask:
        now = dt.datetime.now(dt.UTC)
        claimed = Claimed(new_id(), "name", "default", 0, "{}", None, 1, 10, 0, 1, None, None, now, now)
        return self.held.add(claimed, float("inf"), 60.0)

    def add(self, end: Any = None) -> HeldTask:
        task = self.task()
        self.finisher.add(task, end or completed(task))
        return task


def completed(task: HeldTask, error: str | None = None) -> Settlement:
    return Settlement(task.claimed.id, task.claimed.epoch, Status.COMPLETED, error=error)


@contextlib.asynccontextmanager
async def running(bench: Bench) -> AsyncIterator[Bench]:
    task = asyncio.create_task(bench.finisher.run())
    yield bench
    await asyncio.wait_for(bench.finisher.flush(), 30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_ended_together_is_written_by_one_call() -> None:
    bench = Bench()
    for _ in range(70):
        bench.add()
    async with running(bench):
        pass
    assert [len(call) for call in bench.reservation.settled] == [70]
    assert (bench.counts.completed, len(bench.held)) == (70, 0)


async def test_the_reservation_is_told_when_a_task_is_forgotten() -> None:
    bench = Bench()
    tasks = [bench.add() for _ in range(5)]
    bench.reservation.gone = {tasks[0].claimed.id}
    async with running(bench):
        assert bench.reservation.forgotten == []
    assert bench.reservation.forgotten == [task.claimed.id for task in tasks]


async def test_no_call_is_larger_than_a_batch() -> None:
    bench = Bench(batch=30)
    for _ in range(70):
        bench.add()
    async with running(bench):
        pass
    assert [len(call) for call in bench.reservation.settled] == [30, 30, 10]


async def test_while_tasks_wait_for_a_slot_an_end_waits_for_others() -> None:
    bench = Bench(more_expected=True)
    async with running(bench):
        bench.add()
        await asyncio.sleep(0)
        bench.add()
    assert [len(call) for call in bench.reservation.settled] == [2]


async def test_a_refused_row_fails_alone_with_a_plain_error() -> None:
    bench = Bench()
    tasks = [bench.task() for _ in range(5)]
    bench.reservation.refuse = lambda settlement: settlement.error == "cannot be stored"
    for number, task in enumerate(tasks):
        bench.finisher.add(task, completed(task, "cannot be stored" if number == 2 else None))
    async with running(bench):
        pass
    written = {settlement.id: settlement for call in bench.reservation.settled for settlement in call}
    assert written[tasks[2].claimed.id].status is Status.FAILED
    assert (bench.counts.completed, bench.counts.failed, len(bench.held)) == (4, 1, 0)


async def test_a_busy_database_is_waited_for() -> None:
    bench = Bench()
    bench.lane.before = [OperationalError("UPDATE", {}, Exception("locked")) for _ in range(2)]
    async with running(bench):
        bench.add()
    assert bench.counts.completed == 1


async def test_after_an_unanswered_commit_nothing_is_called_lost() -> None:
    bench = Bench()
    bench.lane.after = [CommitUnknown()]
    async with running(bench):
        bench.add()
    assert (bench.counts.completed, bench.counts.lost) == (1, 0)


async def test_what_is_not_held_any_more_is_lost() -> None:
    bench = Bench()
    task = bench.task()
    bench.reservation.gone.add(task.claimed.id)
    async with running(bench):
        bench.finisher.add(task, completed(task))
        bench.add()
    assert (bench.counts.completed, bench.counts.lost, len(bench.held)) == (1, 1, 0)


async def test_what_the_renewal_has_lost_is_not_counted_again() -> None:
    bench = Bench()
    task = bench.task()
    bench.reservation.gone.add(task.claimed.id)
    assert bench.held.mark_lost(task.pair)
    async with running(bench):
        bench.finisher.add(task, completed(task))
    assert (bench.counts.completed, bench.counts.lost, len(bench.held)) == (0, 0, 0)


async def test_a_task_that_is_being_finished_cannot_be_marked_lost() -> None:
    bench = Bench()
    task = bench.task()
    seen: list[HeldTask | None] = []

    def mark_lost(settlement: Settlement) -> bool:
        seen.append(bench.held.mark_lost((settlement.id, settlement.epoch)))
        return False

    bench.reservation.refuse = mark_lost
    async with running(bench):
        bench.finisher.add(task, completed(task))
    assert seen == [None]
    assert bench.counts.completed == 1


@pytest.mark.parametrize(("ending", "delayed"), [(Ending.RELEASE, False), (Ending.INTERRUPTED, True)])
async def test_what_was_not_run_to_an_end_is_released(ending: Ending, delayed: bool) -> None:
    bench = Bench()
    async with running(bench):
        task = bench.add(ending)
    [(task_id, delay)] = bench.reservation.released
    assert task_id == task.claimed.id
    assert (delay > 0) is delayed
    assert bench.counts.released == 1


async def test_each_kind_of_end_is_counted_as_what_it_is() -> None:
    bench = Bench()
    async with running(bench):
        bench.add(Ending.UNKNOWN)
        bench.add(Ending.LOST)
        bench.add(Ending.REFUSED)
        task = bench.task()
        bench.finisher.add(task, Committed(completed(task)))
    counts = bench.counts
    assert (counts.unknown, counts.lost, counts.completed, len(bench.held)) == (1, 1, 1, 0)
    assert bench.reservation.settled == []
