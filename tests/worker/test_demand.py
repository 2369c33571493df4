from __future__ import annotations

from sa_taskqueue.runtime.backoff import Backoff
from sa_taskqueue.worker.demand import Demand


def test_before_anything_is_measured_only_free_slots_are_filled() -> None:
    demand = Demand(concurrency=10, prefetch=200, batch=100)
    assert demand.next_claim(free=10, waiting=0) == 10
    assert demand.next_claim(free=0, waiting=0) == 0


def test_fast_handlers_claim_whole_batches_ahead() -> None:
    demand = Demand(concurrency=10, prefetch=200, batch=100)
    demand.observe(1000, 0.01)
    assert demand.ahead == 200
    assert demand.next_claim(free=0, waiting=100) == 100
    assert demand.next_claim(free=0, waiting=150) == 0


def test_slow_handlers_leave_the_rest_to_other_workers() -> None:
    demand = Demand(concurrency=10, prefetch=200, batch=100)
    demand.observe(10, 600.0)
    assert demand.ahead == 0
    assert demand.next_claim(free=0, waiting=0) == 0
    assert demand.next_claim(free=3, waiting=0) == 3


def test_the_mean_follows_a_change_of_load() -> None:
    demand = Demand(concurrency=10, prefetch=200, batch=100)
    demand.observe(1000, 0.01)
    for _ in range(20):
        demand.observe(10, 100.0)
    assert demand.ahead == 0


def test_no_more_than_a_batch_is_claimed_at_once() -> None:
    assert Demand(concurrency=500, prefetch=0, batch=100).next_claim(free=500, waiting=0) == 100


def test_the_sleep_doubles_up_to_its_limit_and_begins_anew() -> None:
    backoff = Backoff(0.1, 2.0)
    for expected in (0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0):
        assert 0.75 * expected <= backoff.delay() <= 1.25 * expected
    backoff.reset()
    assert backoff.delay() <= 0.125
