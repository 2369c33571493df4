"""Slots without a database: order, limits, sharing between threads and the loop."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sa_taskqueue.ids import new_id
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.store import Claimed
from sa_taskqueue.worker.ending import Ending
from sa_taskqueue.worker.held import HeldTask
from sa_taskqueue.worker.slots import Slots
from tests.models import Task
from tests.support import eventually_async

queue = TaskQueue(Task)


@queue.task
def in_thread() -> None: ...


@queue.task
async def on_loop() -> None: ...


def held(kind: Any, priority: int = 0) -> HeldTask:
    now = dt.datetime.now(dt.UTC)
    task = HeldTask(Claimed(new_id(), "n", "q", priority, "{}", None, 1, 9, 0, 1, None, None, now, now), 1e18, 60.0)
    task.definition = kind
    return task


class Ends:
    """Collects what the slots hand over."""

    def __init__(self) -> None:
        self.tasks: list[HeldTask] = []
        self.notified = 0

    def collect(self, task: HeldTask, end: object, seconds: float) -> None:
        self.tasks.append(task)

    def notify(self) -> None:
        self.notified += 1


def make(
    concurrency: int, run: Callable[[HeldTask], None] = lambda task: None, wake: Callable[[], None] = lambda: None
) -> tuple[Slots, Ends]:
    async def run_async(task: HeldTask) -> Ending:
        await asyncio.sleep(0)
        run(task)
        return Ending.RELEASE

    def run_sync(task: HeldTask) -> Ending:
        run(task)
        return Ending.RELEASE

    ends = Ends()
    return Slots("q", concurrency, run_sync, run_async, ends, wake), ends


async def test_tasks_start_in_the_order_of_the_claim() -> None:
    started: list[int] = []
    slots, _ = make(1, lambda task: started.append(task.claimed.priority))
    slots.put([held(on_loop if number % 3 == 0 else in_thread, number) for number in range(50)])
    await eventually_async(lambda: slots.at_rest)
    assert started == list(range(50))


async def test_threads_and_loop_share_the_concurrency() -> None:
    lock = threading.Lock()
    now = most = 0
    nothing = threading.Event()

    def run(_: HeldTask) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        nothing.wait(0.001)
        with lock:
            now -= 1

    slots, ends = make(3, run)
    slots.put([held(on_loop if number % 2 else in_thread) for number in range(60)])
    await eventually_async(lambda: slots.at_rest)
    assert len(ends.tasks) == 60
    assert most <= 3


async def test_one_thread_takes_its_whole_share_in_one_wake() -> None:
    threads: set[int] = set()
    slots, _ = make(1, lambda task: threads.add(threading.get_ident()))
    slots.put([held(in_thread) for _ in range(100)])
    await eventually_async(lambda: slots.at_rest)
    assert len(threads) == 1


async def test_wake_is_called_when_the_line_is_short_and_when_all_rests() -> None:
    wakes: list[int] = []
    waiting: list[int] = []
    slots, _ = make(1, wake=lambda: wakes.append(slots.waiting))
    slots.low_water = 5
    slots.put([held(in_thread) for _ in range(20)])
    await eventually_async(lambda: slots.at_rest and len(wakes) >= 2)
    assert waiting == []
    assert wakes[-1] == 0


async def test_what_waits_can_be_taken_back() -> None:
    go_on, started = threading.Event(), threading.Event()

    def run(_: HeldTask) -> None:
        started.set()
        go_on.wait(60)

    slots, ends = make(1, run)
    slots.put([held(in_thread) for _ in range(10)])
    assert await asyncio.to_thread(started.wait, 30)
    assert len(slots.take_waiting()) == 9
    go_on.set()
    await eventually_async(lambda: slots.at_rest)
    assert len(ends.tasks) == 1


async def test_an_abandoned_threads_end_is_dropped_and_its_slot_is_free() -> None:
    go_on = threading.Event()
    slow, quick = held(in_thread, 1), held(in_thread, 2)

    def run(task: HeldTask) -> None:
        if task is slow:
            go_on.wait(60)

    slots, ends = make(1, run)
    slots.put([slow, quick])
    [(thread, task)] = slots.in_threads()
    assert task is slow
    assert slots.abandon(thread, task)
    assert not slots.abandon(thread, task)
    await eventually_async(lambda: ends.tasks == [quick] and slots.at_rest)
    assert slots.abandoned == 1
    go_on.set()
    await eventually_async(lambda: slots.abandoned == 0)
    assert ends.tasks == [quick]


@pytest.mark.parametrize("cancelled_first", [False, True])
async def test_a_cancelled_task_gives_its_slot_back(cancelled_first: bool) -> None:
    cancelled: list[HeldTask] = []

    async def run_async(task: HeldTask) -> Ending:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(task)
        return Ending.LOST

    ends = Ends()
    slots = Slots("q", 1, lambda task: Ending.LOST, run_async, ends, lambda: None)
    task = held(on_loop)
    if cancelled_first:  # the loop comes to the cancel when the task is made, but has not taken its first step
        slots.cancel(task)
        slots.put([task])
    else:
        slots.put([task])
        slots.cancel(task)
    await eventually_async(lambda: slots.at_rest)
    assert cancelled == ends.tasks == [task]
