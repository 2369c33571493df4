"""What the flows of a relay share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sa_taskqueue import telemetry
from sa_taskqueue.states import MessageStatus

if TYPE_CHECKING:
    from sa_taskqueue.queue import TaskQueue
    from sa_taskqueue.relay.counts import RelayCounts
    from sa_taskqueue.relay.routes import Routes
    from sa_taskqueue.relay.settings import RelaySettings
    from sa_taskqueue.relay.shares import Keeper
    from sa_taskqueue.runtime.lane import Lane
    from sa_taskqueue.store.outgoing import Ending

logger = logging.getLogger("sa_taskqueue.relay")


@dataclass(frozen=True, slots=True)
class Tools:
    """Lanes, brokers and counts of one relay."""

    queue: TaskQueue
    settings: RelaySettings
    counts: RelayCounts
    routes: Routes
    keeper: Keeper
    claims: Lane
    claims_keys: Lane
    marks: Lane

    @property
    def keeps_sent(self) -> bool:
        """Whether rows stay when they are SENT."""
        return self.settings.keep_sent > timedelta(0)

    @property
    def several(self) -> bool:
        """Whether there is more than one broker, so that messages of one are claimed while another is down."""
        return len(self.routes.targets) > 1

    def count(self, endings: Sequence[Ending], key: str | None) -> None:
        """Count what was written, and tell of what was given up."""
        for ending in endings:
            match ending.status:
                case MessageStatus.SENT:
                    self.counts.sent += 1
                case MessageStatus.FAILED:
                    self.counts.failed += 1
                    _tell_given_up(ending, key)
                case MessageStatus.BLOCKED:
                    self.counts.blocked += 1
                    _tell_given_up(ending, key)
                case _:
                    self.counts.retried += 1


def _tell_given_up(ending: Ending, key: str | None) -> None:
    of_key = "" if key is None else f" of the key {key!r}"
    logger.error("message %s%s is %s: %s", ending.id, of_key, ending.status, ending.error)
    telemetry.emit(telemetry.MessageGivenUp(ending.id, key, ending.status, ending.error))
