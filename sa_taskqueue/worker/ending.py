"""How the run of one task ended, as the slots hand it to the finisher."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sa_taskqueue.store import Settlement


class Ending(enum.Enum):
    """An end without an outcome of the handler."""

    RELEASE = enum.auto()
    """Give the task back without counting the attempt: it was not started, or was interrupted by the worker's end."""
    INTERRUPTED = enum.auto()
    """As RELEASE, after a pause: the handler ended with SystemExit or the like, and would do so again at once."""
    UNKNOWN = enum.auto()
    """Give the task back for a worker that knows its name."""
    LOST = enum.auto()
    """The renewal has reported the lease as lost, or it was given up; nothing is written."""
    REFUSED = enum.auto()
    """The guarded write of the handler's own transaction found the lease lost; that transaction was rolled back."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome was committed together with the handler's work."""

    settlement: Settlement


End: TypeAlias = "Settlement | Committed | Ending"

Ends: TypeAlias = "End | list[End]"
"""How what one call of a handler has run ended; of a batch, an end for each task in its order."""
