"""What the calls of a handler for one task and of a range handler have in common."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from sa_taskqueue.exceptions import ConfigurationError, InvalidHandler, InvalidSetting
from sa_taskqueue.worker.ending import Ending
from sa_taskqueue.worker.outcome import HandlerTimeout

if TYPE_CHECKING:
    from sa_taskqueue.worker.held import HeldTask
    from sa_taskqueue.worker.session_scope import WorkUnit

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


async def in_greenlet(unit: WorkUnit | None, function: Callable[[*Ts], R], *args: *Ts) -> R:
    """Call what may use the unit's connection the way an AsyncEngine's connection must be used."""
    if unit is None or not unit.used:
        return function(*args)
    from sqlalchemy.util import greenlet_spawn

    ending = asyncio.ensure_future(greenlet_spawn(function, *args))
    while not ending.done():
        # A cancel that comes now, such as that of a stop, must not cut a COMMIT in two.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([ending])
    return ending.result()


def not_startable(task: HeldTask) -> Ending | None:
    """A task that waited past its deadline may be somebody else's by now."""
    if task.lost:
        return Ending.LOST
    return Ending.RELEASE if time.monotonic() >= task.deadline else None


async def within(timeout: float | None, handler: Awaitable[Any]) -> Any:
    """Await the handler for so many seconds; HandlerTimeout after them."""
    if timeout is None:
        return await handler
    scope = asyncio.timeout(timeout)
    try:
        async with scope:
            return await handler
    except TimeoutError as error:
        if scope.expired():
            raise HandlerTimeout(f"the handler ran longer than {timeout:g} s") from error
        raise


def not_awaited(name: str, value: Awaitable[Any]) -> InvalidHandler:
    """The error for a sync function that returned a coroutine: nothing of it has run."""
    if isinstance(value, Coroutine):
        value.close()
    return InvalidHandler(name=name, reason="it returned an awaitable, but is not an async function")


def blocks_the_loop() -> InvalidSetting:
    """The error for a call that would wait for the loop on the loop."""
    value = "called by an async handler, whose loop it would block for ever"
    return InvalidSetting(setting="context.extend", value=value, allowed="replaced by: await context.aextend(seconds)")


def no_session(is_async: bool) -> ConfigurationError:
    """The error for a session of the other kind than the engine."""
    handler, engine = ("async", "AsyncEngine") if is_async else ("sync", "Engine")
    value = f"asked for by an {handler} handler"
    return InvalidSetting(setting="context.session", value=value, allowed=f"used with an {engine}")
