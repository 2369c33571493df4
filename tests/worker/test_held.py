from __future__ import annotations

import datetime as dt

from sa_taskqueue.ids import new_id
from sa_taskqueue.store import Claimed
from sa_taskqueue.worker.held import HeldTask, HeldTasks


def hold(held: HeldTasks, deadline: float = 100.0, lease: float = 60.0) -> HeldTask:
    now = dt.datetime.now(dt.UTC)
    claimed = Claimed(new_id(), "name", "default", 0, "{}", None, 1, 10, 0, 7, None, None, now, now)
    return held.add(claimed, deadline, lease)


def test_pairs_are_grouped_by_lease() -> None:
    held = HeldTasks()
    short, long = hold(held), hold(held, lease=600.0)
    assert held.by_lease() == {60.0: [(short.claimed.id, 7)], 600.0: [(long.claimed.id, 7)]}
    assert len(held.pairs()) == 2


def test_a_renewal_never_moves_a_deadline_back() -> None:
    held = HeldTasks()
    task = hold(held, deadline=100.0)
    held.renewed([task.claimed.id, new_id()], 90.0)
    assert task.deadline == 100.0
    held.renewed([task.claimed.id], 130.0)
    assert held.expired(129.0) == []
    assert held.expired(130.0) == [task]


def test_a_lost_task_is_told_once_and_renewed_no_more() -> None:
    held = HeldTasks()
    task = hold(held)
    event = task.lost_event()
    assert held.mark_lost(task.pair) is task
    assert held.mark_lost(task.pair) is None
    assert event.is_set()
    assert held.pairs() == []
    assert held.expired(1e9) == []


def test_an_event_asked_for_after_the_loss_is_set() -> None:
    held = HeldTasks()
    task = hold(held)
    held.mark_lost(task.pair)
    assert task.lost_event().is_set()


def test_what_is_being_finished_is_neither_lost_nor_expired() -> None:
    held = HeldTasks()
    task = hold(held)
    task.finishing = True
    assert held.mark_lost(task.pair) is None
    assert held.expired(1e9) == []


def test_a_finish_comes_before_a_loss_or_after_it() -> None:
    held = HeldTasks()
    first, second = hold(held), hold(held)
    assert held.finish([first])
    assert held.mark_lost(first.pair) is None
    assert held.mark_lost(second.pair) is second
    assert not held.finish([second])


def test_a_forgotten_task_is_forgotten() -> None:
    held = HeldTasks()
    first, second = hold(held), hold(held)
    held.remove_all([first.pair, (new_id(), 1)])
    assert held.pairs() == [second.pair]


def test_the_end_of_an_earlier_claim_does_not_forget_a_later_one_of_the_same_task() -> None:
    held = HeldTasks()
    earlier = hold(held)
    later = held.add(earlier.claimed._replace(epoch=earlier.claimed.epoch + 2), 1.0, 60.0)
    assert held.mark_lost(earlier.pair) is None
    held.remove_all([earlier.pair])
    assert held.pairs() == [later.pair]
