"""Which broker a topic goes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.base import Publisher
from sa_taskqueue.publishers.registry import publisher_for
from sa_taskqueue.relay.target import Target

Destination = str | Publisher | Callable[..., Any]

_SHOWN = 10_000
"""Topics whose route is remembered."""


class Routes:
    """Patterns in the order given, the first that fits wins; ``*`` stands for any characters, ``?`` for one."""

    def __init__(self, to: Destination | Mapping[str, Destination]) -> None:
        if isinstance(to, Mapping):
            if not to:
                raise InvalidSetting(setting="to", value=to, allowed="at least one pattern with a broker")
            given = [(_pattern(pattern), destination) for pattern, destination in to.items()]
        else:
            given = [("*", to)]
        targets: dict[Any, Target] = {}
        self._patterns: list[tuple[str, Target]] = []
        for pattern, destination in given:
            known: Any = destination if isinstance(destination, str) else id(destination)
            if known not in targets:
                targets[known] = Target(pattern, publisher_for(destination))
            self._patterns.append((pattern, targets[known]))
        self.targets = tuple(targets.values())
        self._known: dict[str, Target | None] = {}

    def target(self, topic: str) -> Target | None:
        """The broker for the topic; None if no pattern fits."""
        try:
            return self._known[topic]
        except KeyError:
            found = next((target for pattern, target in self._patterns if fnmatchcase(topic, pattern)), None)
            if len(self._known) < _SHOWN:
                self._known[topic] = found
            return found


def _pattern(pattern: object) -> str:
    if not isinstance(pattern, str) or not pattern:
        raise InvalidSetting(setting="to", value=pattern, allowed="patterns of topics, such as 'orders.*'")
    return pattern
