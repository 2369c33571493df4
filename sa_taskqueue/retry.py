"""When a failed task runs again.

Policies compose with ``|``: ``exponential(max_attempts=8) | never.on(InvalidAddress)`` retries every
error but `InvalidAddress`. A policy limited by `RetryPolicy.on` comes before one that is not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from sa_taskqueue.exceptions import InvalidSetting

_MOST_ATTEMPTS = 1000
_LONGEST_DELAY = 366 * 86_400.0
_LARGEST_EXPONENT = 700.0
"""``exp`` of a little more is no float."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One policy before composition; ``errors`` None means every error."""

    seconds: Callable[[int], float] | None
    jitter: float
    cap: float
    max_attempts: int | None
    errors: tuple[type[BaseException], ...] | None = None

    def delay(self, attempt: int) -> float | None:
        if self.seconds is None:
            return None
        spread = 1.0 + self.jitter * (2.0 * random.random() - 1.0)  # noqa: S311 - jitter needs no secrecy
        return min(self.seconds(attempt) * spread, self.cap)


class RetryPolicy:
    """A rule, or several joined by ``|``, that gives the delay before the next attempt."""

    __slots__ = ("_rules",)

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self._rules = rules

    @property
    def max_attempts(self) -> int | None:
        """The most attempts that any rule allows; None if none says a number."""
        limits = [rule.max_attempts for rule in self._rules if rule.max_attempts is not None]
        return max(limits, default=None)

    def on(self, *errors: type[BaseException]) -> RetryPolicy:
        """The same policy for these exception types and their subclasses only."""
        if not errors or not all(isinstance(error, type) and issubclass(error, BaseException) for error in errors):
            raise InvalidSetting(setting="RetryPolicy.on", value=errors, allowed="one or more exception types")
        return RetryPolicy(tuple(replace(rule, errors=errors) for rule in self._rules))

    def __or__(self, other: RetryPolicy) -> RetryPolicy:
        return RetryPolicy(self._rules + other._rules)

    def delay(self, attempt: int, error: BaseException, max_attempts: int | None = None) -> float | None:
        """Seconds to wait after attempt number ``attempt`` (from 1) ended in ``error``; None: no more attempts.

        ``max_attempts`` is the task's own limit. If it differs from the policy's it was chosen for this task, and
        wins over the limit of a rule for every error.
        """
        rule = self._rule_for(error)
        if rule is None:
            return None
        limit = rule.max_attempts
        if max_attempts is not None:
            chosen = max_attempts != self.max_attempts
            limit = max_attempts if limit is None or (chosen and rule.errors is None) else min(limit, max_attempts)
        if limit is not None and attempt >= limit:
            return None
        return rule.delay(attempt)

    def _rule_for(self, error: BaseException) -> _Rule | None:
        for rule in self._rules:
            if rule.errors is not None and isinstance(error, rule.errors):
                return rule
        return next((rule for rule in self._rules if rule.errors is None), None)


def exponential(
    base: float = 2.0,
    factor: float = 1.0,
    cap: float = 3600.0,
    jitter: float = 0.1,
    max_attempts: int | None = None,
) -> RetryPolicy:
    """Wait ``factor * base ** (attempt - 1)`` seconds, at most ``cap``.

    ``jitter`` from 0 to 1 spreads each delay by that share up and down, so that tasks which failed
    together do not return together.
    """
    _check(base=base, least=1.0)
    _check(factor=factor, least=0.0)

    def seconds(attempt: int) -> float:
        # By logarithms, because 2.0 ** 10_000 overflows.
        if factor == 0.0:
            return 0.0
        power = (attempt - 1) * math.log(base)
        exponent = math.log(factor) + power
        if cap <= 0.0 or exponent >= math.log(cap):
            return cap
        # With the least of factors the power alone overflows.
        return math.exp(exponent) if power > _LARGEST_EXPONENT else factor * base ** (attempt - 1)

    return _policy(seconds, jitter, cap, max_attempts)


def linear(
    step: float = 10.0, cap: float = 3600.0, jitter: float = 0.1, max_attempts: int | None = None
) -> RetryPolicy:
    """Wait ``step * attempt`` seconds, at most ``cap``."""
    _check(step=step, least=0.0)
    return _policy(lambda attempt: step * attempt, jitter, cap, max_attempts)


def fixed(seconds: float, jitter: float = 0.0, max_attempts: int | None = None) -> RetryPolicy:
    """Wait the same number of seconds each time."""
    _check(seconds=seconds, least=0.0)
    return _policy(lambda _attempt: seconds, jitter, _LONGEST_DELAY, max_attempts)


never = RetryPolicy((_Rule(None, 0.0, 0.0, None),))
"""Do not run the task again."""


def _policy(seconds: Callable[[int], float], jitter: float, cap: float, max_attempts: int | None) -> RetryPolicy:
    _check(jitter=jitter, least=0.0, most=1.0)
    _check(cap=cap, least=0.0)
    if max_attempts is not None and (
        isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or not 1 <= max_attempts <= _MOST_ATTEMPTS
    ):
        raise InvalidSetting(setting="max_attempts", value=max_attempts, allowed=f"from 1 to {_MOST_ATTEMPTS}")
    return RetryPolicy((_Rule(seconds, jitter, cap, max_attempts),))


def _check(*, least: float, most: float = _LONGEST_DELAY, **setting: float) -> None:
    [(name, value)] = setting.items()
    if not isinstance(value, (int, float)) or not least <= value <= most:  # NaN fails too
        raise InvalidSetting(setting=name, value=value, allowed=f"a number from {least:g} to {most:g}")
