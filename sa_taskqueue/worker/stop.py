"""Ending a worker: it takes no more, lets handlers finish within the grace time, and gives back the rest unburned."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sa_taskqueue.worker.ending import Ending

if TYPE_CHECKING:
    from sa_taskqueue.runtime.stop import Stop
    from sa_taskqueue.worker.finisher import Finisher
    from sa_taskqueue.worker.held import Unit
    from sa_taskqueue.worker.roles import ServingLane, ServingSlots

logger = logging.getLogger("sa_taskqueue.worker")

TICK = 0.02
"""Seconds between two looks at what still runs."""

CLAIM_PATIENCE = 2.0
"""Seconds for a claim that is under way to answer, so that what it took is given back."""

CANCEL_PATIENCE = 2.0
"""Seconds in which a cancelled async handler may clean up."""

FLUSH_PATIENCE = 10.0
"""Seconds in which the last ends must be written; a database that is down then costs no more than the leases."""


async def wind_down(
    stop: Stop,
    lanes: Mapping[ServingLane, asyncio.Task[None]],
    all_slots: Sequence[ServingSlots],
    finisher: Finisher,
    grace: float,
) -> None:
    """Bring the queues to rest. When this returns nothing is held whose end could still be written."""
    for lane in lanes:
        lane.stop()
    await asyncio.wait(lanes.values(), timeout=CLAIM_PATIENCE)
    for slots in all_slots:
        for task in slots.take_waiting():
            finisher.add(task, Ending.RELEASE)
    await rest_within(all_slots, grace, stop.at_once)
    for slots in all_slots:
        _interrupt(slots, finisher)
    await rest_within(all_slots, CANCEL_PATIENCE)
    for slots in all_slots:
        for unit in slots.on_loop():
            _give_back(unit, finisher)
    try:
        async with asyncio.timeout(FLUSH_PATIENCE):
            await finisher.flush()
    except TimeoutError:
        logger.warning("%d ended tasks could not be written; their leases will end", finisher.pending)


def _interrupt(slots: ServingSlots, finisher: Finisher) -> None:
    """Cancel async handlers; give back the tasks of sync ones, which are told so and whose end is refused."""
    for thread, unit in slots.in_threads():
        if slots.abandon(thread, unit):
            unit.lose()
            _give_back(unit, finisher)
    for unit in slots.on_loop():
        slots.cancel(unit)


def _give_back(unit: Unit, finisher: Finisher) -> None:
    for task in unit.members:
        finisher.add(task, Ending.RELEASE)


async def rest_within(all_slots: Sequence[ServingSlots], seconds: float, cut: asyncio.Event | None = None) -> None:
    """Return when nothing runs or waits, when the time is over, or when `cut` is set."""
    deadline = time.monotonic() + seconds
    while not all(slots.at_rest for slots in all_slots):
        if time.monotonic() >= deadline or (cut is not None and cut.is_set()):
            return
        await asyncio.sleep(TICK)
