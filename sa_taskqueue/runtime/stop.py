"""Whether and how fast a worker or a relay is to end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Stop:
    """Set once or twice by whoever asks for the end. On the loop's thread."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.at_once = asyncio.Event()

    def request(self) -> None:
        """Ask for the end; asked a second time, the grace time is over."""
        if self.requested.is_set():
            self.at_once.set()
        self.requested.set()

    async def unless_requested(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do the work; False if the end was asked for first: what a silent server holds up is then cut off."""
        task, asked = asyncio.create_task(work), asyncio.create_task(self.requested.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            return False
        finally:
            asked.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
