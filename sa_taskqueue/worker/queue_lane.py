"""One queue of one worker: how many are wanted, claim them, hand them to the slots; sleep while there is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sa_taskqueue.worker.ending import Ending

if TYPE_CHECKING:
    from sa_taskqueue.definitions import TaskDefinition
    from sa_taskqueue.runtime.backoff import Backoff
    from sa_taskqueue.worker.claim import Claimer
    from sa_taskqueue.worker.demand import Demand
    from sa_taskqueue.worker.finisher import Finisher
    from sa_taskqueue.worker.held import HeldTask
    from sa_taskqueue.worker.slots import Slots


class QueueLane:
    """Claims the next batch while the slots work on this one."""

    def __init__(
        self,
        name: str,
        claimer: Claimer,
        finisher: Finisher,
        demand: Demand,
        backoff: Backoff,
        handlers: Mapping[str, TaskDefinition[..., Any]],
        *,
        on_empty: Callable[[], None],
    ) -> None:
        self.name = name
        self._claimer = claimer
        self._finisher = finisher
        self._demand = demand
        self._backoff = backoff
        self._handlers = handlers
        self._on_empty = on_empty
        self._loop = asyncio.get_running_loop()
        self._wanting = asyncio.Event()
        self._asked = False
        self._hint = asyncio.Event()
        self._stopping = False
        self._claiming = False

    @property
    def at_rest(self) -> bool:
        """Whether nothing of this queue is being claimed, waits or runs here."""
        return not self._claiming and self._slots.at_rest

    def serve(self, slots: Slots) -> None:
        """Say which slots the tasks go to."""
        self._slots = slots

    def want(self) -> None:
        """The slots are running out of tasks; from any thread. Each wake of the loop costs a system call."""
        if not self._asked:
            self._asked = True
            self._loop.call_soon_threadsafe(self._wanting.set)

    def wake(self) -> None:
        """There may be work: end the sleep. On the loop's thread."""
        self._hint.set()

    def stop(self) -> None:
        """Claim no more, and start nothing that is being claimed now."""
        self._stopping = True
        self._hint.set()
        self._wanting.set()

    async def run(self) -> None:
        """Claim and dispatch until `stop`."""
        while not self._stopping:
            if self._claimer.exhausted:
                self._slots.hurry()
                self.stop()
                return
            self._wanting.clear()
            self._asked = False
            self._demand.observe(*self._slots.measured())
            self._slots.low_water = self._demand.ahead // 2
            limit = self._demand.next_claim(self._slots.free, self._slots.waiting)
            if not limit:
                await self._wanting.wait()
                continue
            if self._finisher.behind:
                await self._finisher.caught_up()
                continue
            self._hint.clear()
            tasks = await self._claim(limit)
            if len(tasks) < limit:
                await self._rest(found=bool(tasks))
            else:
                self._backoff.reset()

    async def _claim(self, limit: int) -> Sequence[HeldTask]:
        self._claiming = True
        try:
            tasks = await self._claimer.claim(self.name, limit)
            self._dispatch(tasks)
        finally:
            self._claiming = False
        return tasks

    def _dispatch(self, tasks: Sequence[HeldTask]) -> None:
        known = []
        batches: dict[TaskDefinition[..., Any], list[HeldTask]] = {}
        for task in tasks:
            if self._stopping:
                self._finisher.add(task, Ending.RELEASE)
                continue
            definition = self._handlers.get(task.claimed.name)
            if definition is None:
                self._finisher.add(task, Ending.UNKNOWN)
                continue
            task.definition = definition
            if definition.lease is not None:
                task.lease = max(task.lease, definition.lease)
            if definition.batch is None:
                known.append(task)
            else:
                batches.setdefault(definition, []).append(task)
        if known:
            self._slots.put(known)
        for definition, of_one in batches.items():
            self._slots.put_together(definition, of_one)
        if tasks:
            self._demand.per_slot = max((one.batch or 1 for one in batches), default=1)

    async def _rest(self, *, found: bool) -> None:
        """The queue gave less than asked for: look again after a while, or when a wake-up says so."""
        if found:
            self._backoff.reset()
        else:
            self._on_empty()
        if self._hint.is_set():
            return
        try:
            async with asyncio.timeout(self._backoff.delay()):
                await self._hint.wait()
        except TimeoutError:
            return
