"""The checker itself: a right history passes, and each broken promise is named. Violations are seeded one at a time."""

from __future__ import annotations

import pytest

from tests.chaos.history import Event, Kind, Report, check


def run(task: str = "t", epoch: int = 1, at: float = 0.0) -> list[Event]:
    """A task's whole right life, one claim long."""
    return [
        Event(Kind.ENQUEUE, task),
        Event(Kind.STORED, task),
        Event(Kind.CLAIM, task, epoch=epoch, at=at, until=at + 3),
        Event(Kind.RENEW, task, epoch=epoch, until=at + 5),
        Event(Kind.FINISH, task, epoch=epoch, at=at + 4, status="COMPLETED"),
        Event(Kind.EFFECT, task, epoch=epoch),
    ]


def checked(events: list[Event]) -> Report:
    return check(events, max_attempts=2, max_crashes=1)


def broken(events: list[Event]) -> set[str]:
    return checked(events).broken_rules


def test_a_right_history_has_no_violation() -> None:
    assert checked(run("a") + run("b")).violations == []


def test_a_take_over_after_the_lease_and_a_second_run_are_right() -> None:
    events = run(epoch=3, at=10)
    events[2:2] = [
        Event(Kind.CLAIM, "t", epoch=1, at=0, until=3),
        Event(Kind.PUT_BACK, "t", epoch=1, at=3.5, crashed=True),
    ]
    events.append(Event(Kind.FINISH, "t", epoch=1, accepted=False))
    report = checked(events)
    assert report.violations == []
    assert report.counts["refused"] == 1
    assert report.counts["crashed"] == 1


def test_a_rolled_back_enqueue_without_a_trace_is_right() -> None:
    assert broken([Event(Kind.ENQUEUE, "t", outcome="fail")]) == set()


@pytest.mark.parametrize("events", [[], run()[1:]], ids=["absent", "present"])
def test_an_enqueue_of_unknown_outcome_may_have_happened_or_not(events: list[Event]) -> None:
    assert broken([Event(Kind.ENQUEUE, "t", outcome="unknown"), *events]) == set()


def test_an_acknowledged_task_that_never_ended_is_lost() -> None:
    assert broken(run()[:3]) == {"lost"}


def test_two_ends_are_reported() -> None:
    events = run()
    assert "finished_twice" in broken([*events, Event(Kind.FINISH, "t", epoch=1, status="COMPLETED")])


def test_a_claim_after_the_end_is_reported() -> None:
    assert "finished_twice" in broken([*run(), Event(Kind.CLAIM, "t", epoch=2, at=9, until=12)])


def test_a_row_that_nobody_enqueued_is_a_phantom() -> None:
    assert broken(run()[1:]) == {"phantom"}


def test_a_row_of_a_rolled_back_unit_of_work_is_a_phantom() -> None:
    assert broken([Event(Kind.ENQUEUE, "t", outcome="fail"), *run()[1:]]) == {"phantom"}


def test_a_claim_that_keeps_the_epoch_is_reported() -> None:
    events = run(at=10)
    events[2:2] = [Event(Kind.CLAIM, "t", epoch=1, at=0, until=3), Event(Kind.PUT_BACK, "t", epoch=1, at=4)]
    assert broken(events) == {"epoch"}


def test_a_finish_by_a_stale_holder_is_reported() -> None:
    events = run(epoch=2)
    events[4] = Event(Kind.FINISH, "t", epoch=1, at=4, status="COMPLETED")
    assert broken(events) == {"stale_finish", "effect"}


def test_a_claim_inside_a_living_lease_is_reported() -> None:
    events = run()
    events.insert(3, Event(Kind.CLAIM, "t", epoch=2, at=1, until=4))
    assert "two_holders" in broken(events)


def test_a_take_over_inside_a_living_lease_is_reported() -> None:
    events = run(epoch=2, at=10)
    events[2:2] = [
        Event(Kind.CLAIM, "t", epoch=1, at=0, until=3),
        Event(Kind.PUT_BACK, "t", epoch=1, at=2, crashed=True),
    ]
    assert broken(events) == {"two_holders"}


def test_a_second_effect_is_reported() -> None:
    assert broken([*run(), Event(Kind.EFFECT, "t", epoch=1)]) == {"effect"}


def test_a_missing_effect_is_reported() -> None:
    assert broken(run()[:-1]) == {"effect"}


def test_an_effect_under_another_epoch_is_reported() -> None:
    events = run(epoch=2)
    events[-1] = Event(Kind.EFFECT, "t", epoch=1)
    assert broken(events) == {"effect"}


def test_an_effect_of_a_failed_task_is_reported() -> None:
    events = run()
    events[4] = Event(Kind.FINISH, "t", epoch=1, at=4, status="FAILED")
    assert broken(events) == {"effect"}


def test_too_many_claims_are_reported() -> None:
    life = run(epoch=9, at=90)
    for epoch in range(1, 4):
        life[2:2] = [
            Event(Kind.CLAIM, "t", epoch=4 - epoch, at=40 - 10 * epoch, until=43 - 10 * epoch),
            Event(Kind.PUT_BACK, "t", epoch=4 - epoch, at=44 - 10 * epoch, crashed=True),
        ]
    assert broken(life) == {"attempts"}


def test_a_unique_key_held_by_two_live_tasks_is_reported() -> None:
    def keyed(task: str) -> list[Event]:
        events = run(task)
        events[1] = Event(Kind.STORED, task, key="k")
        return events

    assert broken(keyed("a") + keyed("b")) == set()
    assert broken(keyed("a")[:2] + keyed("b") + keyed("a")[2:]) == {"unique"}
