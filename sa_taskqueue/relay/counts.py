"""What a relay has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RelayCounts:
    """Messages, and keys where it says so. Read it from any thread."""

    claimed: int = 0
    sent: int = 0
    """Confirmed by the broker and marked."""
    retried: int = 0
    """Not confirmed, to be sent again after a back-off."""
    failed: int = 0
    """Given up, after the last attempt or because the broker refused them; with a tombstone where a key orders them."""
    blocked: int = 0
    """Keys that were held back by a message that was given up."""
    put_off: int = 0
    """Given back without counting the attempt: their broker could not be reached, or was busy, or there is no route."""
    lost: int = 0
    """Held no more when they were to be sent or marked: another relay has them, or an operator acted."""
    numbered: int = 0
    """Got their number from the relay, because their writer took none."""
