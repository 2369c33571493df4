"""The settings of a relay, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypedDict

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.retry import RetryPolicy, exponential
from sa_taskqueue.runtime.holder import between, check_holder

DAY = 86_400.0

AfterLimit = Literal["block", "dead_letter"]


def _default_retry() -> RetryPolicy:
    """About twenty minutes in all: a broker that takes nothing for longer is a matter for people."""
    return exponential(base=2.0, factor=0.5, cap=120.0, max_attempts=16)


@dataclass(frozen=True, kw_only=True, slots=True)
class RelaySettings:
    """Seconds are real numbers of seconds; counts are whole numbers. InvalidSetting names what is out of range."""

    name: str
    """Stored in `reserved_by`, at most 200 characters."""
    batch: int = 500
    """Messages per claim and per call of the publisher at most."""
    lease: float = 60.0
    """How long a dead relay's messages and keys stay taken."""
    grace: float = 30.0
    """How long messages on their way may still be confirmed after the first stop signal."""
    drain: bool = False
    """End when nothing is due and nothing is on its way. What is scheduled for later, retries among it, is left."""
    retry: RetryPolicy = field(default_factory=_default_retry)
    """When a message that was not confirmed is sent again, and how often. Without an attempt left, or refused by the
    broker as it is, a message without a key is FAILED; of one with a key `after_limit` decides. While a broker cannot
    be reached no attempts are counted."""
    after_limit: AfterLimit = "block"
    """``block``: the key is BLOCKED until an operator acts, and its later messages wait. ``dead_letter``: the message
    is FAILED, and a tombstone with its number goes out, so that consumers do not wait for it."""
    keep_sent: timedelta = timedelta(hours=24)
    """How long SENT rows are kept, for a replay; ``timedelta(0)`` deletes them at once."""
    keep_failed: timedelta = timedelta(days=14)
    poll_min: float = 0.1
    poll_max: float = 2.0
    """An idle relay looks again after `poll_min`, then ever later up to `poll_max`; a wake-up ends the sleep."""

    def __post_init__(self) -> None:
        check_holder(self.name)
        between("batch", self.batch, 1, 1_000)
        between("lease", self.lease, 1.0, DAY)
        between("grace", self.grace, 0.0, DAY)
        between("poll_min", self.poll_min, 0.001, 3_600.0)
        between("poll_max", self.poll_max, self.poll_min, 3_600.0)
        if not isinstance(self.retry, RetryPolicy):
            raise InvalidSetting(setting="retry", value=self.retry, allowed="a policy such as exponential()")
        if self.after_limit not in ("block", "dead_letter"):
            raise InvalidSetting(setting="after_limit", value=self.after_limit, allowed="'block' or 'dead_letter'")
        for name in ("keep_sent", "keep_failed"):
            kept = getattr(self, name)
            if not isinstance(kept, timedelta) or kept < timedelta(0):
                raise InvalidSetting(setting=name, value=kept, allowed="a timedelta that is not negative")


class RelayOptions(TypedDict, total=False):
    """The settings that `Relay` takes by keyword and hands on, so that type checkers know them."""

    batch: int
    lease: float
    grace: float
    drain: bool
    retry: RetryPolicy
    after_limit: AfterLimit
    keep_sent: timedelta
    keep_failed: timedelta
    poll_min: float
    poll_max: float
