from __future__ import annotations

import datetime as dt
import time
from uuid import UUID

import pytest

from sa_taskqueue.states import Status
from sa_taskqueue.store import Claimed, ClaimMemory, Settlement
from sa_taskqueue.store.memory import MOST_POSITIONS, Position, Reach
from tests.store.bench import Bench, pairs

pg = pytest.mark.servers("postgresql")
NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


class Clock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def at(second: float, priority: int = 0) -> Position:
    return Position(priority, NOON + dt.timedelta(seconds=second), UUID(int=int(second * 1000) + 1))


def remembering(*taken: Position, clock: Clock | None = None) -> tuple[ClaimMemory, Clock]:
    clock = clock or Clock()
    memory = ClaimMemory(clock)
    memory.claimed(Reach.START, taken, full=False, started=clock.now)
    return memory, clock


def starts(memory: ClaimMemory) -> list[int]:
    return list(memory.ranges(Reach.POSITION)["low_priority"])


def test_the_first_claim_scans_from_the_start_the_next_from_the_position() -> None:
    memory = ClaimMemory(Clock())
    assert memory.reach() is Reach.START

    memory, _ = remembering(at(1))
    memory.claimed(Reach.LOOK_BACK, [], full=False, started=100.0)
    assert memory.reach() is Reach.POSITION


def test_a_free_scan_comes_back_after_a_second_also_on_short_answers() -> None:
    memory, clock = remembering(at(1))
    memory.claimed(Reach.LOOK_BACK, [], full=False, started=clock.now)
    for _ in range(100):
        memory.claimed(Reach.POSITION, [], full=False, started=clock.now)
    assert memory.reach() is Reach.POSITION

    clock.now += 1.01
    assert memory.reach() is Reach.START


def test_a_costly_scan_pauses_for_19_times_its_duration() -> None:
    memory, clock = remembering(at(1))
    clock.now += 2.0
    memory.claimed(Reach.START, [], full=False, started=clock.now - 0.5)

    clock.now += 9.4
    assert memory.reach() is not Reach.START
    clock.now += 0.2
    assert memory.reach() is Reach.START


def test_ranges_cover_everything_but_what_lies_before_a_position() -> None:
    memory, _ = remembering(at(1, priority=-3), at(2, priority=4))

    ranges = memory.ranges(Reach.POSITION)

    assert ranges["low_priority"] == [-32768, -3, 4]
    assert ranges["end_priority"] == [-3, 4, 32767]
    assert ranges["low_ready_at"][1:] == [NOON + dt.timedelta(seconds=1), NOON + dt.timedelta(seconds=2)]
    assert ranges["look_back"] == 0.0
    assert memory.ranges(Reach.LOOK_BACK)["look_back"] == 5.0


def test_a_straggler_does_not_move_the_position_back() -> None:
    memory, clock = remembering(at(50))
    memory.claimed(Reach.START, [at(3)], full=False, started=clock.now)

    assert memory.ranges(Reach.POSITION)["low_ready_at"][1] == NOON + dt.timedelta(seconds=50)


def test_a_full_answer_of_stragglers_does_because_more_may_follow() -> None:
    memory, clock = remembering(at(50))
    memory.claimed(Reach.START, [at(3), at(4)], full=True, started=clock.now)

    assert memory.ranges(Reach.POSITION)["low_ready_at"][1] == NOON + dt.timedelta(seconds=4)


def test_the_priority_not_claimed_from_for_longest_is_forgotten() -> None:
    memory, clock = remembering(*(at(1, priority) for priority in range(MOST_POSITIONS)))
    memory.claimed(Reach.POSITION, [at(2, 0)], full=False, started=clock.now)
    memory.claimed(Reach.POSITION, [at(2, 99)], full=False, started=clock.now)

    assert starts(memory) == [-32768, 0, *range(2, MOST_POSITIONS), 99]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> ClaimMemory:
    return ClaimMemory(clock)


def claim(bench: Bench, memory: ClaimMemory, limit: int = 10, **options: float) -> list[Claimed]:
    with bench.transaction() as connection:
        return bench.store.claim(connection, "mail", limit, lease=options.get("lease", 60.0), by="w", memory=memory)


def warm(bench: Bench, memory: ClaimMemory, clock: Clock) -> list[Claimed]:
    """Claims until the next claim starts at the position."""
    bench.add(6)
    claimed = [*claim(bench, memory, 2), *claim(bench, memory, 2), *claim(bench, memory, 2)]
    assert memory.reach() is Reach.POSITION
    return claimed


@pytest.mark.servers("sqlite", "mysql", "mariadb")
def test_where_nothing_is_gained_there_is_no_memory(bench: Bench) -> None:
    assert bench.store.claim_memory() is None


@pg
def test_from_the_position_all_later_rows_come_in_order(bench: Bench, memory: ClaimMemory, clock: Clock) -> None:
    warm(bench, memory, clock)
    usual = bench.add(3)
    urgent = bench.add(2, priority=-1)
    late = bench.add(2, priority=1)

    assert [task.id for task in claim(bench, memory, 20)] == [*urgent, *usual, *late]


@pg
@pytest.mark.parametrize("way", ["retry", "release", "take over", "promotion"])
def test_what_becomes_new_again_is_found_from_the_position(
    bench: Bench, memory: ClaimMemory, clock: Clock, way: str
) -> None:
    task = warm(bench, memory, clock)[0]
    expected = task.id
    with bench.transaction() as connection:
        if way == "retry":
            bench.store.settle(connection, [Settlement(task.id, task.epoch, Status.SCHEDULED)])
        elif way == "release":
            bench.store.release(connection, pairs([task]))
        elif way == "take over":
            bench.store.renew(connection, pairs([task]), lease=-1)
            bench.store.take_over(connection, 10, max_crashes=3)
    if way == "promotion":
        [expected] = bench.add(status=Status.SCHEDULED, scheduled_at=NOON - dt.timedelta(days=999), ready_at=NOON)
        with bench.transaction() as connection:
            assert bench.store.promote(connection, 10) == 1

    assert memory.reach() is Reach.POSITION
    assert [claimed.id for claimed in claim(bench, memory)] == [expected]


@pg
@pytest.mark.parametrize("behind", ["late commit", "raised priority", "clock set back"])
def test_what_lies_behind_the_position_is_found_by_the_next_full_scan(
    bench: Bench, memory: ClaimMemory, clock: Clock, behind: str
) -> None:
    warm(bench, memory, clock)
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    [task] = bench.add(ready_at=long_ago, priority=7 if behind == "raised priority" else 0)
    if behind == "raised priority":
        bench.change([task], priority=0)

    assert claim(bench, memory) == []
    clock.now += 1.01
    assert memory.reach() is Reach.START
    assert [claimed.id for claimed in claim(bench, memory)] == [task]


@pg
def test_a_commit_a_little_late_is_found_by_looking_back(bench: Bench, memory: ClaimMemory, clock: Clock) -> None:
    last = warm(bench, memory, clock)[-1]
    ready_at = bench.row(last.id).ready_at
    [task] = bench.add(ready_at=ready_at - dt.timedelta(seconds=3))

    with bench.transaction() as connection:
        found = bench.store.claim(connection, "mail", 9, lease=60, by="w", memory=LookingBack(memory))

    assert [claimed.id for claimed in found] == [task]


class LookingBack(ClaimMemory):
    """A memory whose next claim looks back."""

    def __init__(self, memory: ClaimMemory) -> None:
        super().__init__()
        self._positions = memory._positions

    def reach(self) -> Reach:
        return Reach.LOOK_BACK


@pg
def test_two_workers_with_memories_share_all_rows(bench: Bench) -> None:
    one, two = ClaimMemory(), ClaimMemory()
    ids = set()
    for number in range(12):
        ids.update(bench.add(5, priority=number % 3))
    found: list[Claimed] = []
    deadline = time.monotonic() + 60
    while len(found) < len(ids) and time.monotonic() < deadline:
        with bench.transaction() as first, bench.transaction() as second:
            found += bench.store.claim(first, "mail", 4, lease=60, by="one", memory=one)
            found += bench.store.claim(second, "mail", 4, lease=60, by="two", memory=two)

    assert sorted(task.id for task in found) == sorted(ids)
