from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import click

from sa_taskqueue.cli.base import Command, duration, target_argument
from sa_taskqueue.cli.loading import load
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import STRATEGIES, Lease, Reservation
from sa_taskqueue.worker import Worker
from sa_taskqueue.worker.settings import DEFAULT_CONCURRENCY

logger = logging.getLogger("sa_taskqueue.worker")


def queue_option(text: str) -> tuple[str, int]:
    """NAME or NAME=CONCURRENCY."""
    name, equals, concurrency = text.rpartition("=")
    if not equals:
        name, concurrency = text, str(DEFAULT_CONCURRENCY)
    if not name or not concurrency.isdecimal():
        raise click.BadParameter(f"{text!r} is neither NAME nor NAME=CONCURRENCY, such as mail=20")
    return name, int(concurrency)


def _duration_option(name: str, default: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=duration, metavar="DURATION", default=default, show_default=True, help=text)


def _warn_of_unused(queue: TaskQueue, served: Mapping[str, int]) -> None:
    """Most often a typing error; not refused, since `.using(queue=...)` may send tasks to any queue."""
    used = {queue.default_queue, *(handler.queue for handler in queue.handlers.values())}
    for name in sorted(set(served) - used):
        logger.warning("no handler uses the queue %s; those in use are: %s", name, ", ".join(sorted(used)))


def _strategy(name: str, *, count_crashes: bool) -> Reservation:
    """A lease counts crashes whether it is asked to or not."""
    return STRATEGIES[name](count_crashes=True) if count_crashes and name != Lease.name else STRATEGIES[name]()


@click.command()
@target_argument
@click.option(
    "--queue",
    "queues",
    type=queue_option,
    metavar="NAME[=CONCURRENCY]",
    multiple=True,
    help=f"Queue to serve and how many tasks at once (default {DEFAULT_CONCURRENCY}); may be repeated. "
    "Without it: the default queue of TARGET.",
)
@click.option("--drain", is_flag=True, help="End when nothing is due.")
@click.option("--max-tasks", type=click.IntRange(min=1), help="End after so many tasks.")
@click.option(
    "--reservation",
    type=click.Choice(list(STRATEGIES)),
    default=Lease.name,
    show_default=True,
    help="How tasks are held. lease: by a time in the row. row-lock: by the lock on the row, in the transaction of the "
    "work. advisory-lock: by a lock of the connection. reservation-table: by a row of TaskQueue(reservations=...).",
)
@_duration_option("--lease", "60s", "How long a dead worker's tasks stay taken, with lease and reservation-table.")
@_duration_option("--grace", "30s", "How long running tasks may go on at a stop.")
@click.option(
    "--max-crashes",
    type=int,
    default=3,
    show_default=True,
    help="Workers that die with a task until it fails. Leases count them; the others with --count-crashes.",
)
@click.option(
    "--count-crashes",
    is_flag=True,
    help="Note each attempt in the table of TaskQueue(crash_notes=...) before it begins, where no lease does it.",
)
@click.option("--name", default="", help="Name of this worker in its rows; by default host, process and random.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def worker(
    target: str,
    url: str | None,
    queues: tuple[tuple[str, int], ...],
    reservation: str,
    lease: timedelta,
    grace: timedelta,
    count_crashes: bool,
    log_level: str,
    **settings: Any,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C; a second signal cuts the grace short."""
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    loaded = load(target, url)
    concurrency = dict(queues) or {loaded.queue.default_queue: DEFAULT_CONCURRENCY}
    _warn_of_unused(loaded.queue, concurrency)
    code = Worker(
        loaded.queue,
        loaded.engine(),
        queues=concurrency,
        reservation=_strategy(reservation, count_crashes=count_crashes),
        lease=lease.total_seconds(),
        grace=grace.total_seconds(),
        **settings,
    ).run()
    sys.exit(code)
