from __future__ import annotations

import pytest

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.runtime.retrying import MAX_RETRIES, RECONNECT_CAP, RETRY_CAP, Action, Failures, full_jitter


def longest(low: float, high: float) -> float:
    return high


@pytest.mark.parametrize(
    "kind",
    [ErrorKind.DEADLOCK, ErrorKind.SERIALIZATION, ErrorKind.LOCK_TIMEOUT, ErrorKind.BUSY],
    ids=lambda kind: kind.value,
)
def test_a_retryable_error_is_repeated_five_times_and_then_raised(kind: ErrorKind) -> None:
    failures = Failures()
    for _ in range(MAX_RETRIES):
        assert failures.decide(kind) is Action.REPEAT
        failures.delay(Action.REPEAT)
    assert failures.decide(kind) is Action.RAISE


def test_a_lost_connection_is_made_again_for_ever_and_does_not_use_up_the_repeats() -> None:
    failures = Failures()
    for _ in range(100):
        assert failures.decide(ErrorKind.DISCONNECT) is Action.RECONNECT
        failures.delay(Action.RECONNECT)
    assert failures.decide(ErrorKind.DEADLOCK) is Action.REPEAT


@pytest.mark.parametrize("kind", [ErrorKind.UNIQUE, ErrorKind.MISSING_TABLE, ErrorKind.DISK_FULL, ErrorKind.OTHER])
def test_an_error_that_repeating_cannot_cure_is_raised(kind: ErrorKind) -> None:
    assert Failures().decide(kind) is Action.RAISE


def test_delays_grow_and_are_capped_at_any_number_of_attempts() -> None:
    failures = Failures(uniform=longest)
    reconnects = [failures.delay(Action.RECONNECT) for _ in range(10)]
    assert reconnects == sorted(reconnects)
    assert reconnects[-1] == RECONNECT_CAP
    assert full_jitter(10_000, 0.1, RETRY_CAP, longest) == RETRY_CAP


def test_the_jitter_is_full() -> None:
    bounds: list[float] = []

    def lowest(low: float, high: float) -> float:
        bounds.extend((low, high))
        return low

    full_jitter(3, 0.1, 10.0, lowest)
    assert bounds == pytest.approx([0.0, 0.8])
