"""Renews the leases of everything a worker holds, and gives up in time what it could not renew.

Two threads, neither of which runs handlers or the event loop. One sends the renewal every quarter of the lease. The
other only looks at the monotonic clock: when no answer came in time, the tasks are marked lost before their leases can
end, even if the first thread hangs in the driver.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sqlalchemy import Connection

from sa_taskqueue import telemetry
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.runtime.margins import safety_margin
from sa_taskqueue.runtime.retrying import full_jitter
from sa_taskqueue.store import Pair, Renewed
from sa_taskqueue.worker.held import HeldTask, HeldTasks

logger = logging.getLogger("sa_taskqueue.worker")

RENEWALS_PER_LEASE = 4
"""Three renewals may fail before the margin is reached."""

RETRY_BASE, RETRY_CAP = 0.25, 2.0
"""Seconds between failed renewals: several tries fit between a renewal and the fence of the default lease of 60 s."""


class RenewStore(Protocol):
    """The part of the store (or of a reservation) that renews."""

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        """Hold the tasks for `lease` more seconds; which were extended, and which are held as long as before."""
        ...


class BlockingLane(Protocol):
    """What the renewal needs of `runtime.side.SideLane`; it is made, used and closed in the renewal's thread."""

    def attempt(
        self,
        operation: Callable[[Connection, Mapping[float, Sequence[Pair]]], Renewed],
        groups: Mapping[float, Sequence[Pair]],
        /,
    ) -> Renewed:
        """Run the operation as one transaction, once."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Renewer:
    """Started and stopped by the worker. `on_lost` is called in one of its threads, once for each lost task."""

    def __init__(
        self,
        held: HeldTasks,
        store: RenewStore,
        side_lane: Callable[[], BlockingLane],
        *,
        lease: float,
        on_lost: Callable[[HeldTask], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._held = held
        self._store = store
        self._side_lane = side_lane
        self._interval = lease / RENEWALS_PER_LEASE
        self._margin = safety_margin(lease)
        self._on_lost = on_lost
        self._clock = clock
        self._stopping = threading.Event()
        self._due = threading.Event()
        self._lane: BlockingLane | None = None
        self._failures = 0
        self._blocked = False
        self._patient_until = 0.0
        self._threads = [
            threading.Thread(target=self._renewing, name="sa_taskqueue-renewal", daemon=True),
            threading.Thread(target=self._fencing, name="sa_taskqueue-fence", daemon=True),
        ]

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def renew_now(self) -> None:
        """Renew without waiting for the next turn, such as after a task was extended."""
        self._due.set()

    def stop(self, timeout: float = 5.0) -> None:
        """End both threads; a renewal that hangs in the driver is left behind after `timeout` seconds."""
        self._stopping.set()
        self._due.set()
        for thread in self._threads:
            thread.join(timeout)

    def renew(self) -> None:
        """Renew everything held, in one transaction: one statement for each length of lease, as a rule one."""
        groups = self._held.by_lease()
        if not groups:
            return
        sent_at = self._clock()  # before sending: the lease can only end later than counted from here
        point("renew.before_send")
        extended, standing = self._opened().attempt(self._renew_groups, groups)
        for lease, pairs in groups.items():
            self._held.renewed(extended & {task_id for task_id, _ in pairs}, sent_at + lease - safety_margin(lease))
            gone = [pair for pair in pairs if pair[0] not in extended and pair[0] not in standing]
            self._lose(gone, "its row is no longer held under this epoch")

    def fence(self) -> None:
        """Give up what is not trusted any more.

        On SQLite nobody can take a task over while a transaction of our own holds the write lock, and no renewal can be
        written either: the renewal has one margin to be answered once the lock is free.
        """
        now = self._clock()
        if self._held.owns_write_lock:
            self._blocked = True
        elif self._blocked:
            self._blocked = False
            self._patient_until = now + self._margin
            self._due.set()
        elif now >= self._patient_until:
            self._lose([task.pair for task in self._held.expired(now)], "no renewal was answered in time")

    def _renew_groups(self, connection: Connection, groups: Mapping[float, Sequence[Pair]]) -> Renewed:
        total = Renewed(set(), set())
        for lease, pairs in groups.items():
            renewed = self._store.renew(connection, pairs, lease=lease)
            total.extended.update(renewed.extended)
            total.standing.update(renewed.standing)
        return total

    def _lose(self, pairs: Sequence[Pair], reason: str) -> None:
        lost = [task for pair in pairs if (task := self._held.mark_lost(pair)) is not None]
        if not lost:
            return
        telemetry.emit(telemetry.LeasesLost(tuple(task.claimed.id for task in lost)))
        for task in lost:
            logger.warning("task %s (epoch %d) is lost: %s", task.claimed.id, task.claimed.epoch, reason)
            self._on_lost(task)

    def _renewing(self) -> None:
        try:
            while not self._stopping.is_set():
                self._due.wait(self._turn())
                self._due.clear()
        finally:
            if self._lane is not None:
                self._lane.close()

    def _turn(self) -> float:
        """One renewal; the seconds until the next."""
        try:
            self.renew()
        except Exception as error:  # noqa: BLE001  whatever a driver raises, the next renewal must be tried
            delay = min(self._interval, full_jitter(self._failures, RETRY_BASE, RETRY_CAP))
            self._failures += 1
            logger.warning("renewal failed (%s); next try in %.2f s", error, delay)
            return delay
        self._failures = 0
        return self._interval

    def _opened(self) -> BlockingLane:
        if self._lane is None:
            self._lane = self._side_lane()
        return self._lane

    def _fencing(self) -> None:
        tick = min(0.25, self._margin / 8)
        while not self._stopping.wait(tick):
            self.fence()
