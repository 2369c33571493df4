"""Gives up sync handlers that run longer than their timeout: nothing can stop a thread from outside."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sa_taskqueue.worker.outcome import HandlerTimeout

if TYPE_CHECKING:
    from sa_taskqueue.worker.counts import Counts
    from sa_taskqueue.worker.finisher import Finisher
    from sa_taskqueue.worker.held import Unit
    from sa_taskqueue.worker.outcome import Outcomes
    from sa_taskqueue.worker.roles import ServingSlots

logger = logging.getLogger("sa_taskqueue.worker")

TICK = 0.1
"""Seconds between two looks: how much longer than its timeout a sync handler may run."""


class Watchdog:
    """Looks at all slots of a worker; `recycle` is called once, when more threads hang than are allowed."""

    def __init__(
        self,
        slots: Sequence[ServingSlots],
        outcomes: Outcomes,
        finisher: Finisher,
        counts: Counts,
        *,
        max_abandoned: int,
        recycle: Callable[[], None],
    ) -> None:
        self._slots = slots
        self._outcomes = outcomes
        self._finisher = finisher
        self._counts = counts
        self._max_abandoned = max_abandoned
        self._recycle = recycle
        self._recycling = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(TICK)
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Give up what is overdue at that moment."""
        for slots in self._slots:
            for thread, task in slots.overdue(now):
                if slots.abandon(thread, task):
                    self._give_up(task)
        hanging = sum(slots.abandoned for slots in self._slots)
        if hanging > self._max_abandoned and not self._recycling:
            self._recycling = True
            logger.error("%d handlers hang after their timeout; the worker stops to be started again", hanging)
            self._recycle()

    def _give_up(self, task: Unit) -> None:
        """Tell the handler, and record the timeout now: its own end comes too late and is refused."""
        definition = task.handler
        task.lose()
        self._counts.abandoned += 1
        ids = ", ".join(str(one.claimed.id) for one in task.members)
        logger.warning("task %s (%s) ran out of time; its thread is abandoned", ids, definition.name)
        error = HandlerTimeout(f"the handler ran longer than {definition.timeout:g} s")
        for one, settlement in self._outcomes.all_raised(task, error):
            self._finisher.add(one, settlement, definition.timeout or 0.0)
