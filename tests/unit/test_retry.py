from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.retry import RetryPolicy, exponential, fixed, linear, never

ERROR = ValueError("x")


def test_exponential_doubles_up_to_its_cap() -> None:
    policy = exponential(base=2, factor=3, cap=20, jitter=0)
    assert [policy.delay(attempt, ERROR) for attempt in (1, 2, 3, 4, 5)] == [3, 6, 12, 20, 20]


def test_linear_and_fixed() -> None:
    assert [linear(step=10, cap=25, jitter=0).delay(attempt, ERROR) for attempt in (1, 2, 3)] == [10, 20, 25]
    assert [fixed(7).delay(attempt, ERROR) for attempt in (1, 2, 900)] == [7, 7, 7]


def test_never_means_no_more_attempts() -> None:
    assert never.delay(1, ERROR) is None


@given(
    attempt=st.integers(1, 10_000),
    base=st.floats(1, 1e6),
    factor=st.floats(0, 1e6),
    cap=st.floats(0, 1e7),
    jitter=st.floats(0, 1),
)
def test_no_attempt_overflows_or_passes_the_cap(
    attempt: int, base: float, factor: float, cap: float, jitter: float
) -> None:
    delay = exponential(base=base, factor=factor, cap=cap, jitter=jitter).delay(attempt, ERROR)
    assert delay is not None
    assert math.isfinite(delay)
    assert 0 <= delay <= cap


def test_attempt_10_000_waits_for_the_cap() -> None:
    assert exponential(cap=3600, jitter=0).delay(10_000, ERROR) == 3600


def test_jitter_spreads_both_ways_within_its_share() -> None:
    policy = fixed(100, jitter=0.2)
    delays = [policy.delay(1, ERROR) or 0.0 for _ in range(500)]
    assert 80 <= min(delays) < 100 < max(delays) <= 120


def test_max_attempts_ends_the_retries() -> None:
    policy = fixed(1, max_attempts=3)
    assert [policy.delay(attempt, ERROR) for attempt in (1, 2, 3)] == [1, 1, None]


def test_a_rule_for_an_exception_wins_over_the_general_one_wherever_it_stands() -> None:
    for policy in (exponential(jitter=0) | never.on(KeyError), never.on(KeyError) | exponential(jitter=0)):
        assert policy.delay(1, KeyError()) is None
        assert policy.delay(1, ERROR) == 1


def test_a_rule_for_an_exception_covers_its_subclasses_and_the_first_one_wins() -> None:
    policy = fixed(1).on(KeyError) | fixed(2).on(LookupError, OSError)
    assert policy.delay(1, KeyError()) == 1
    assert policy.delay(1, IndexError()) == 2
    assert policy.delay(1, ConnectionResetError()) == 2


def test_an_error_that_no_rule_covers_is_not_retried() -> None:
    assert fixed(1).on(KeyError).delay(1, ERROR) is None


def test_the_most_attempts_of_a_composed_policy_is_that_of_its_most_patient_rule() -> None:
    assert (exponential(max_attempts=3) | fixed(5, max_attempts=50).on(TimeoutError)).max_attempts == 50
    assert (exponential() | never.on(KeyError)).max_attempts is None


def test_each_rule_keeps_its_own_limit_when_the_task_has_the_limit_of_the_policy() -> None:
    policy = exponential(max_attempts=3) | fixed(5, max_attempts=50).on(TimeoutError)
    assert policy.delay(3, ERROR, 50) is None
    assert policy.delay(3, TimeoutError(), 50) == 5


@pytest.mark.parametrize(("limit", "attempt", "expected"), [(9, 8, 1.0), (9, 9, None), (2, 2, None)])
def test_the_limit_chosen_for_a_task_wins(limit: int, attempt: int, expected: float | None) -> None:
    assert fixed(1, max_attempts=3).delay(attempt, ERROR, limit) == expected
    assert fixed(1).delay(attempt, ERROR, limit) == expected


def test_the_limit_chosen_for_a_task_never_prolongs_a_rule_for_an_exception() -> None:
    assert fixed(1, max_attempts=3).on(ValueError).delay(3, ERROR, 9) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: exponential(base=0.5),
        lambda: exponential(factor=-1),
        lambda: exponential(cap=float("nan")),
        lambda: exponential(cap=float("inf")),
        lambda: exponential(jitter=1.5),
        lambda: linear(step=-1),
        lambda: fixed(-1),
        lambda: fixed("soon"),  # type: ignore[arg-type]
        lambda: fixed(1, max_attempts=0),
        lambda: fixed(1, max_attempts=1001),
        lambda: fixed(1, max_attempts=True),
        lambda: fixed(1).on(),
        lambda: fixed(1).on("KeyError"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidSetting):
        make()


def test_composing_leaves_the_parts_as_they_were() -> None:
    first, second = exponential(), fixed(1)
    assert isinstance(first | second.on(KeyError), RetryPolicy)
    assert second.delay(1, ERROR) == 1
