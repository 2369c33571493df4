"""What becomes of a message that was not sent: pure decisions."""

from __future__ import annotations

import pytest

from sa_taskqueue.publishers import Failed
from sa_taskqueue.relay.judging import LONGEST_DELAY, judge
from sa_taskqueue.retry import fixed


@pytest.mark.parametrize(("asked", "delay"), [(None, 5.0), (1.0, 5.0), (60.0, 60.0), (1e300, LONGEST_DELAY)])
def test_a_receiver_may_ask_for_a_longer_pause_but_not_for_one_that_no_database_can_add(
    asked: float | None, delay: float
) -> None:
    verdict = judge(Failed("busy", retry_after=asked), 1, fixed(5.0))
    assert verdict is not None
    assert verdict.delay == delay
