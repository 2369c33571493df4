"""Wake-ups within one process: an enqueue that has committed tells the workers beside it. Polling finds the rest."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from sqlalchemy import URL, Table

Topic = tuple[str, str | None, int | None, str | None, str]
OnWakeUp = Callable[[str], None]


class _Hub:
    """Who listens to which table of which database."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew. In a forked child the parent's workers do not run, and its lock may be held by nobody alive."""
        self._lock = threading.Lock()
        self._listeners: dict[Topic, tuple[OnWakeUp, ...]] = {}

    def notify(self, topic: Topic, queue: str) -> None:
        for on_wake_up in self._listeners.get(topic, ()):
            on_wake_up(queue)

    def add(self, topic: Topic, on_wake_up: OnWakeUp) -> None:
        with self._lock:
            self._listeners[topic] = (*self._listeners.get(topic, ()), on_wake_up)

    def remove(self, topic: Topic, on_wake_up: OnWakeUp) -> None:
        with self._lock:
            rest = tuple(each for each in self._listeners.get(topic, ()) if each is not on_wake_up)
            if rest:
                self._listeners[topic] = rest
            else:
                self._listeners.pop(topic, None)


_hub = _Hub()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hub.forget)


def notify(url: URL, table: Table, queue: str) -> None:
    """Tell this process's workers on the table that the queue has work; from any thread, cheap when there is none."""
    _hub.notify(_topic(url, table), queue)


def subscribe(url: URL, table: Table, on_wake_up: OnWakeUp) -> Callable[[], None]:
    """Call `on_wake_up(queue)` for each wake-up, in the thread that enqueued: it must not block. The result ends it."""
    topic = _topic(url, table)
    _hub.add(topic, on_wake_up)
    return lambda: _hub.remove(topic, on_wake_up)


def _topic(url: URL, table: Table) -> Topic:
    """Without user and driver: a web request's Engine and a worker's AsyncEngine may share one table."""
    return url.get_backend_name(), url.host, url.port, url.database, table.fullname
