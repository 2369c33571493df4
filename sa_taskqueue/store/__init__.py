"""The only place that executes statements for the library: sync functions over a Connection in a transaction."""

from sa_taskqueue.store.crash_notes import CrashNotes
from sa_taskqueue.store.inbox import prune_inbox
from sa_taskqueue.store.memory import ClaimMemory
from sa_taskqueue.store.row_locks import RowLocks
from sa_taskqueue.store.rows import Claimed, Pair, Renewed, Settlement, TakenOver
from sa_taskqueue.store.tasks import TaskStore

__all__ = [
    "ClaimMemory",
    "Claimed",
    "CrashNotes",
    "Pair",
    "Renewed",
    "RowLocks",
    "Settlement",
    "TakenOver",
    "TaskStore",
    "prune_inbox",
]
