"""One queue whose slots claim for themselves: at most one of the free ones looks into the database at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sa_taskqueue.runtime.backoff import Backoff
    from sa_taskqueue.worker.locked_slots import LockedSlots
    from sa_taskqueue.worker.quota import Quota


class LockedLane:
    """Sends one free slot after the other to look while they find tasks, and none while the queue is empty.

    A slot that has found a task goes on claiming by itself until it finds none.
    """

    def __init__(self, slots: LockedSlots, quota: Quota, backoff: Backoff, *, on_empty: Callable[[], None]) -> None:
        self._slots = slots
        self._quota = quota
        self._backoff = backoff
        self._on_empty = on_empty
        self._hint = asyncio.Event()
        self._looking = False

    @property
    def at_rest(self) -> bool:
        """Whether nothing of this queue is being claimed or runs here."""
        return not self._looking and self._slots.at_rest

    def wake(self) -> None:
        """There may be work: end the sleep. On the loop's thread."""
        self._hint.set()

    def stop(self) -> None:
        """Claim no more."""
        self._slots.stop()
        self._hint.set()

    async def run(self) -> None:
        """Look until `stop`, or until `max_tasks` are claimed; raise what a slot's thread raised."""
        looking = asyncio.ensure_future(self._look_on())
        try:
            await asyncio.wait({looking, self._slots.failed}, return_when=asyncio.FIRST_COMPLETED)
            if self._slots.failed.done():
                self._slots.failed.result()
            looking.result()
        finally:
            looking.cancel()

    async def _look_on(self) -> None:
        while not self._slots.stopping:
            if self._quota.exhausted:
                self.stop()
                return
            slot = await self._slots.free_one()
            if slot is None:
                return
            self._hint.clear()
            self._looking = True
            try:
                found = await slot.look()
            finally:
                self._looking = False
            if found:
                self._backoff.reset()
            else:
                self._on_empty()
                await self._rest()

    async def _rest(self) -> None:
        if self._hint.is_set():
            return
        try:
            async with asyncio.timeout(self._backoff.delay()):
                await self._hint.wait()
        except TimeoutError:
            return
