"""The only place that executes statements for the library: sync functions over a Connection in a transaction."""

from .memory import ClaimMemory
from .rows import Claimed, Pair, Settlement, TakenOver
from .tasks import TaskStore

__all__ = ["ClaimMemory", "Claimed", "Pair", "Settlement", "TakenOver", "TaskStore"]
