"""How far a worker has claimed in one queue."""

from __future__ import annotations


class ClaimMemory:
    """The positions up to which one worker has claimed one queue."""
