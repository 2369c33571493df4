"""Claims the next messages while the last ones are on their way to the broker."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy.exc import DBAPIError

from sa_taskqueue.exceptions import CommitUnknown
from sa_taskqueue.relay.shares import Share
from sa_taskqueue.relay.target import Target
from sa_taskqueue.runtime.backoff import Backoff

logger = logging.getLogger("sa_taskqueue.relay")

AHEAD = 2
"""Shares of one broker that may be claimed: one is sent while the other waits or is being marked."""

BUSY_DELAY = 0.5
"""Seconds for which messages are put off whose broker is busy or down, while others are not."""

NO_ROUTE_DELAY = 15.0
"""Seconds for which a message is put off whose topic fits no pattern: another relay may know it."""

RELEASE_PATIENCE = 5.0
"""Seconds in which a share that was cut off is given back; else its lease ends."""

S = TypeVar("S", bound=Share)


class Source(Protocol[S]):
    """Where shares come from, and how they end."""

    name: str

    async def claim(self) -> tuple[Sequence[S], bool]:
        """Shares that are held now, and whether more may be had at once."""
        ...

    async def deliver(self, share: S) -> None:
        """Send it and write what became of it."""
        ...

    async def put_off(self, share: S, delay: float) -> None:
        """Give it back, due again after so many seconds, no attempt counted."""
        ...


class Pipeline(Generic[S]):
    """One flow of a relay. Run on the loop's thread."""

    def __init__(self, source: Source[S], targets: Sequence[Target], backoff: Backoff) -> None:
        self._source, self._targets, self._backoff = source, targets, backoff
        self._hint, self._done = asyncio.Event(), asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._under_way: Counter[Target] = Counter()
        self._stopping = self._claiming = False

    @property
    def at_rest(self) -> bool:
        """Whether nothing is being claimed or on its way."""
        return not self._claiming and not self._running

    def wake(self) -> None:
        """There may be something: end the sleep."""
        self._hint.set()

    def stop(self) -> None:
        """Claim no more."""
        self._stopping = True
        self._hint.set()
        self._done.set()

    async def run(self) -> None:
        """Claim and send until `stop`."""
        while not self._stopping:
            if not any(map(self._has_room, self._targets)):
                await self._room()
                continue
            self._hint.clear()
            shares, more = await self._claim()
            if more:
                self._backoff.reset()
            else:
                await self._rest(found=bool(shares))

    async def rest(self, seconds: float, cut: asyncio.Event) -> None:
        """Return when nothing is on its way, cutting it off after that time or when `cut` is set."""
        if self._running:
            ended = asyncio.create_task(asyncio.wait(set(self._running)))
            cutting = asyncio.create_task(cut.wait())
            either: set[asyncio.Task[Any]] = {ended, cutting}
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in either:
                task.cancel()
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=RELEASE_PATIENCE)

    async def _claim(self) -> tuple[Sequence[S], bool]:
        self._claiming = True
        try:
            shares, more = await self._source.claim()
            for share in shares:
                self._start(share)
            return shares, more
        except CommitUnknown:
            logger.warning("%s: no answer to the COMMIT of a claim; what it took is free later", self._source.name)
        except DBAPIError as error:
            logger.warning("%s cannot be claimed: %s", self._source.name, error)
        finally:
            self._claiming = False
        return (), False

    def _start(self, share: S) -> None:
        target = share.target
        sent = target is not None and not self._stopping and (len(self._targets) == 1 or self._has_room(target))
        if target is not None:
            self._under_way[target] += 1
        task = asyncio.create_task(self._deliver(share) if sent else self._put_off(share))
        self._running.add(task)
        task.add_done_callback(lambda task: self._ended(task, target))

    async def _deliver(self, share: S) -> None:
        try:
            await self._source.deliver(share)
        except asyncio.CancelledError:
            async with asyncio.timeout(RELEASE_PATIENCE):
                await self._source.put_off(share, 0.0)
            raise

    async def _put_off(self, share: S) -> None:
        target = share.target
        if target is None:
            logger.warning("%s: no pattern fits the topics of %d messages", self._source.name, share.size)
        delay = NO_ROUTE_DELAY if target is None else 0.0 if self._stopping else target.wait + BUSY_DELAY
        await self._source.put_off(share, delay)

    def _ended(self, task: asyncio.Task[None], target: Target | None) -> None:
        self._running.discard(task)
        if target is not None:
            self._under_way[target] -= 1
        self._done.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s: what was claimed is left until its lease ends", self._source.name, exc_info=error)

    def _has_room(self, target: Target) -> bool:
        return not target.wait and self._under_way[target] < (1 if target.down else AHEAD)

    async def _room(self) -> None:
        """Return when a share has ended, or a broker is to be tried again."""
        waits = [target.wait for target in self._targets if target.wait]
        self._done.clear()
        await _within(self._done, min(waits, default=None))

    async def _rest(self, *, found: bool) -> None:
        if found:
            self._backoff.reset()
        if not self._hint.is_set():
            await _within(self._hint, self._backoff.delay())


async def _within(event: asyncio.Event, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
