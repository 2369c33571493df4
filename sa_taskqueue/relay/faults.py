"""The named points of a relay, at which a test may end the process or raise."""

from __future__ import annotations

POINTS = frozenset(
    {
        "relay.claim.before_commit",
        "relay.claim.after_commit",
        "relay.claim_keys.before_commit",
        "relay.claim_keys.after_commit",
        "relay.number.before_commit",
        "relay.publish.before_send",
        "relay.publish.after_confirm",
        "relay.mark.before_commit",
        "relay.mark.after_commit",
        "relay.mark_keys.before_commit",
        "relay.mark_keys.after_commit",
        "relay.renew.before_send",
        "relay.take_over.before_commit",
        "relay.promote.before_commit",
    }
)
"""Every point of the relay. The crash tests read this list."""
