"""`once`: a handler of any consumer of a broker, run once for each message, its work and the mark in one commit."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from sa_taskqueue import validation
from sa_taskqueue.events import Received, read
from sa_taskqueue.exceptions import InvalidHandler, InvalidMessage
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session.inbox import Gaps, first_time

SESSION = "session"

_BODIES = {"body": False, "value": False, "data": True}
"""Where clients have the body, and whether their headers are percent-encoded: nats-py's `data` comes with such."""


def once(
    queue: TaskQueue,
    sessions: Any,
    *,
    source: str | None = None,
    gaps: Gaps = "refuse",
    identify: Callable[[Any], Received] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make of a handler ``handle(message, session)`` one that a consumer calls with the message alone.

    ``sessions`` is a sessionmaker, or for an ``async def`` an async_sessionmaker. For each message a session is opened,
    and committed when the handler returns; a message that was handled before does not reach it, and gives None.
    Acknowledge after it returns. Whatever it raises (MessageGap among it) has rolled back: let the broker bring the
    message again. Messages of aio-pika, confluent-kafka, nats-py and FastStream are understood when they are
    CloudEvents, as the relay sends them; ``identify`` reads any other. ``source`` stands in for the message's own.
    """
    validation.check_choice("gaps", gaps, ("refuse", "accept"))
    queue.inbox_table  # noqa: B018 - MissingTable, here and not at the first message

    def identified(message: Any) -> dict[str, Any]:
        try:
            known = (identify or received)(message)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidMessage(
                field="id", reason=f"it cannot be read ({error}); say how by once(..., identify=...)"
            ) from error
        return {
            "message_id": known.id,
            "source": known.source if source is None else source,
            "key": known.key,
            "seq": known.seq,
            "gaps": gaps,
        }

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        first = _first_parameter(handler)

        async def handle_async(*args: Any, **kwargs: Any) -> Any:
            asked = identified(args[0] if args else kwargs[first])  # FastStream names it
            async with sessions.begin() as session:
                if await first_time(session, queue, **asked):
                    return await handler(*args, session=session, **kwargs)
            return None

        def handle(*args: Any, **kwargs: Any) -> Any:
            asked = identified(args[0] if args else kwargs[first])
            with sessions.begin() as session:
                if first_time(session, queue, **asked):
                    return handler(*args, session=session, **kwargs)
            return None

        return _as_if(handle_async if inspect.iscoroutinefunction(handler) else handle, handler)

    return decorate


def _first_parameter(handler: Callable[..., Any]) -> str:
    """Return the name of the one that takes the message."""
    names = list(inspect.signature(handler).parameters)
    if SESSION not in names or names[0] == SESSION:
        name = getattr(handler, "__name__", repr(handler))
        raise InvalidHandler(name=name, reason=f'it has no parameter "{SESSION}" after that of the message')
    return names[0]


def _as_if(handle: Callable[..., Any], handler: Callable[..., Any]) -> Callable[..., Any]:
    """Show the handler's name and signature without the session: FastStream looks at them."""
    functools.update_wrapper(handle, handler)
    del handle.__wrapped__  # type: ignore[attr-defined]  # the signature would be read from there
    signature = inspect.signature(handler)
    kept = [each for name, each in signature.parameters.items() if name != SESSION]
    handle.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    handle.__annotations__ = {name: each for name, each in handler.__annotations__.items() if name != SESSION}
    return handle


def received(message: Any) -> Received:
    """Read a message of a client: its headers, its body, and where the client keeps it apart its content type."""
    if isinstance(message, Received):
        return message
    headers = _value(message, "headers")
    given = headers if isinstance(headers, Mapping) else dict(headers or ())
    for name, percent_encoded in _BODIES.items():
        if hasattr(message, name):
            content_type = _value(message, "content_type")
            return read(given, _value(message, name), content_type=content_type, percent_encoded=percent_encoded)
    raise AttributeError(f"it has none of {', '.join(_BODIES)}")


def _value(message: Any, name: str) -> Any:
    """The attribute; confluent-kafka has methods."""
    found = getattr(message, name, None)
    return found() if callable(found) else found
