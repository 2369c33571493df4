"""A worker process of the chaos runs: ``python -m tests.chaos.worker_process '{...}'``, the fields of `Orders`.

Its handlers are stubborn: they take no notice of a lost lease or a cancellation, but go on to write their effect and
return, as a handler of an inattentive user would.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url

from sa_taskqueue import TaskContext, TaskQueue, Worker
from sa_taskqueue.reservation import STRATEGIES, Reservation
from sa_taskqueue.runtime.faults import install
from sa_taskqueue.session.sqlite import prepare_sqlite
from sa_taskqueue.worker import faults
from tests.chaos.models import ChaosCrashNote, ChaosEffect, ChaosReservation, ChaosTask
from tests.chaos.told import Teller

CRASH_AT = "SA_TASKQUEUE_CRASH_AT"
"""Environment variable: ``point`` or ``point:nth``; the process kills itself when it reaches it for the nth time."""

HANG_SECONDS = 120.0
"""Longer than any worker is given to end."""


@dataclass(frozen=True)
class Orders:
    """How the worker is to be set up."""

    url: str
    name: str
    file: str
    """Where it tells what it does."""
    use_async: bool = False
    lease: float = 3.0
    grace: float = 10.0
    reservation: str = "lease"
    count_crashes: bool = False
    mutant: str = ""
    """Which of the mutants stands in for the strategy."""


def make_engine(url: str, *, use_async: bool) -> Any:
    if use_async:
        from sqlalchemy.ext.asyncio import create_async_engine

        engine: Any = create_async_engine(url)
    else:
        engine = create_engine(url)
    if make_url(url).get_backend_name() == "sqlite":
        prepare_sqlite(engine)
    return engine


def make_queue() -> TaskQueue:
    """The queue as producers see it; workers fill in what the handlers do."""
    return TaskQueue(
        ChaosTask, default_queue="chaos", max_attempts=20, crash_notes=ChaosCrashNote, reservations=ChaosReservation
    )


def make_reservation(orders: Orders) -> Reservation:
    if orders.mutant:
        from tests.chaos.mutants import MUTANTS, trust_for_ever

        if orders.mutant.startswith("unguarded"):
            trust_for_ever()
        return MUTANTS[orders.mutant]()
    options = {"count_crashes": True} if orders.count_crashes else {}
    return STRATEGIES[orders.reservation](**options)


def add_handlers(queue: TaskQueue, teller: Teller) -> None:
    """The sync and the async form of a handler with an effect, and some that go wrong at the first attempt."""
    never = threading.Event()

    def finish(context: TaskContext, session: Any) -> None:
        session.add(ChaosEffect(task_id=context.task.id, epoch=context.fencing_token))
        teller.tell("ended", task=str(context.task.id), epoch=context.fencing_token)

    @queue.task
    def work(context: TaskContext, seconds: float) -> None:
        teller.tell("start", task=str(context.task.id), epoch=context.fencing_token)
        never.wait(seconds)
        finish(context, context.session)

    @queue.task
    async def async_work(context: TaskContext, seconds: float) -> None:
        teller.tell("start", task=str(context.task.id), epoch=context.fencing_token)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), seconds)
        except asyncio.CancelledError:
            teller.tell("cancelled", task=str(context.task.id), epoch=context.fencing_token)
        finish(context, context.async_session)

    @queue.task
    def hang_once(context: TaskContext) -> None:
        teller.tell("start", task=str(context.task.id), epoch=context.fencing_token)
        if context.attempt == 1:
            never.wait(HANG_SECONDS)
        finish(context, context.session)

    @queue.task
    def fail_once(context: TaskContext) -> None:
        if context.attempt == 1:
            raise RuntimeError("the first attempt fails")
        finish(context, context.session)

    @queue.task
    async def async_fail_once(context: TaskContext) -> None:
        if context.attempt == 1:
            raise RuntimeError("the first attempt fails")
        finish(context, context.async_session)


def install_crash(teller: Teller) -> None:
    """Count how often each fault point is reached, and die at the one the environment names."""
    point, _, nth = os.environ.get(CRASH_AT, "").partition(":")
    if point and point not in faults.POINTS:
        raise SystemExit(f"{CRASH_AT}: there is no point {point!r}")
    reached: Counter[str] = Counter()
    lock = threading.Lock()

    def hook(name: str) -> None:
        with lock:
            reached[name] += 1
            teller.tell("reached", point=name)
            if name == point and reached[name] == int(nth or 1):
                os.kill(os.getpid(), signal.SIGKILL)

    install(hook)


def main(orders: Orders) -> None:
    teller = Teller(Path(orders.file))
    queue = make_queue()
    add_handlers(queue, teller)
    install_crash(teller)
    engine = make_engine(orders.url, use_async=orders.use_async)
    worker = Worker(
        queue,
        engine,
        queues={"chaos": 4},
        name=orders.name,
        lease=orders.lease,
        grace=orders.grace,
        max_crashes=20,
        reservation=make_reservation(orders),
    )
    teller.tell("up")
    worker.run()
    teller.tell("down")


if __name__ == "__main__":
    main(Orders(**json.loads(sys.argv[1])))
