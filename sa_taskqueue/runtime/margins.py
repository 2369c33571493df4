"""How long before its end a lease is no longer trusted, and how long a renewal may take."""

from __future__ import annotations


def safety_margin(lease: float) -> float:
    """Seconds before a lease's end at which it is no longer trusted: 20 %, at least 2 s, at most half the lease."""
    return min(max(2.0, 0.2 * lease), lease / 2)


def renewal_timeout(lease: float) -> float:
    """Seconds a renewal may take before its connection is cut and the next is tried on another."""
    return max(1.0, lease / 8)
