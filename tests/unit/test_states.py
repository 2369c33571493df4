from __future__ import annotations

from datetime import timedelta

import pytest

from sa_taskqueue.states import TERMINAL, TRANSITIONS, Outcome, Retry, Snooze, Status, allowed


def test_every_status_has_its_moves() -> None:
    assert set(TRANSITIONS) == set(Status)


def test_a_status_is_its_text_and_fits_the_column() -> None:
    assert Status.NEW == "NEW"
    assert f"{Status.SCHEDULED}" == "SCHEDULED"
    assert max(map(len, Status)) <= 9


@pytest.mark.parametrize("end", sorted(TERMINAL))
def test_only_a_running_task_ends_and_only_a_waiting_one_is_cancelled(end: Status) -> None:
    assert allowed(Status.RUNNING, end)
    for waiting in (Status.NEW, Status.SCHEDULED):
        assert allowed(waiting, end) == (end is Status.CANCELLED)


def test_a_completed_task_stays_completed() -> None:
    assert not any(allowed(Status.COMPLETED, status) for status in Status)


@pytest.mark.parametrize("end", [Status.FAILED, Status.CANCELLED])
def test_an_operator_may_revive_what_failed_or_was_cancelled(end: Status) -> None:
    assert allowed(end, Status.NEW)
    assert not allowed(end, Status.RUNNING)


def test_outcomes_can_be_raised_or_returned_and_count_in_seconds() -> None:
    assert issubclass(Retry, Outcome)
    assert issubclass(Outcome, Exception)
    assert Retry().after is None
    assert Retry(after=timedelta(minutes=2)).after == 120.0
    assert Snooze(5).after == 5.0


def test_an_outcome_in_the_past_means_now() -> None:
    assert Snooze(timedelta(seconds=-5)).after == 0.0
    assert Retry(after=float("nan")).after == 0.0
