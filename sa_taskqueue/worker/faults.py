"""The named points of a worker, at which a test may end the process or raise."""

from __future__ import annotations

BATCH_POINTS = frozenset({"claim.before_commit", "claim.after_commit", "renew.before_send"})
"""Those of a worker whose claims are transactions of their own."""

LOCKED_POINTS = frozenset({"claim.locked", "claim.noted"})
"""Those of a worker that claims in the transaction of the work: the task is locked, its attempt is noted."""

POINTS = (
    BATCH_POINTS
    | LOCKED_POINTS
    | frozenset(
        {
            "claim.before_send",
            "handler.start",
            "handler.done_before_complete",
            "complete.before_commit",
            "complete.after_commit",
            "fail.before_commit",
            "release.before_commit",
            "take_over.before_commit",
            "promote.before_commit",
        }
    )
)
"""Every point of the worker. `docs` and the crash tests read this list."""
