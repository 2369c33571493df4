"""The renewal's rules, with a clock of the test's own and no database; test_renewal_database.py has the real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from sa_taskqueue import telemetry
from sa_taskqueue.runtime.margins import renewal_timeout, safety_margin
from sa_taskqueue.store import Claimed, Renewed
from sa_taskqueue.worker.held import HeldTask, HeldTasks
from sa_taskqueue.worker.renewal import Renewer
from tests.support import eventually

LEASE = 60.0
Pair = tuple[UUID, int]


def claimed(task_id: UUID | None = None, epoch: int = 1) -> Claimed:
    values: dict[str, Any] = dict.fromkeys(Claimed._fields)
    now = datetime(2026, 11, 30, tzinfo=UTC)
    values.update(id=task_id or uuid4(), name="n", queue="q", body="{}", epoch=epoch, attempt=1, created_at=now)
    return Claimed(**values)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Store:
    """Remembers what it was asked; `gone` are the rows it does not find, `locked` those it may not change."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[Pair], float]] = []
        self.gone: set[UUID] = set()
        self.locked: set[UUID] = set()
        self.meanwhile: Callable[[], None] = lambda: None
        self.error: Exception | None = None

    def renew(self, connection: Connection, held: Sequence[Pair], *, lease: float) -> Renewed:
        self.asked.append((list(held), lease))
        self.meanwhile()
        if self.error is not None:
            raise self.error
        found = {task_id for task_id, _ in held} - self.gone
        return Renewed(found - self.locked, found & self.locked)


class Lane:
    """Runs the operation without a connection."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def attempt(
        self,
        operation: Callable[[Connection, Mapping[float, Sequence[Pair]]], Renewed],
        groups: Mapping[float, Sequence[Pair]],
        /,
    ) -> Renewed:
        return operation(None, groups)  # type: ignore[arg-type]

    def close(self) -> None:
        self.closed.set()


class Scene:
    def __init__(self) -> None:
        self.held, self.store, self.clock, self.lane = HeldTasks(), Store(), Clock(), Lane()
        self.lost: list[UUID] = []
        self.renewer = self.make(LEASE)

    def make(self, lease: float, side_lane: Callable[[], Any] | None = None) -> Renewer:
        def on_lost(task: HeldTask) -> None:
            self.lost.append(task.claimed.id)

        factory = side_lane or (lambda: self.lane)
        return Renewer(self.held, self.store, factory, lease=lease, on_lost=on_lost, clock=self.clock)

    def hold(self, lease: float = LEASE, epoch: int = 1, task_id: UUID | None = None) -> HeldTask:
        return self.held.add(claimed(task_id, epoch), self.clock.now + lease - safety_margin(lease), lease)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize(("lease", "margin"), [(60.0, 12.0), (10.0, 2.0), (5.0, 2.0), (4.0, 2.0), (2.0, 1.0)])
def test_the_margin_is_a_fifth_at_least_two_seconds_at_most_half(lease: float, margin: float) -> None:
    assert safety_margin(lease) == margin


@pytest.mark.parametrize("lease", [4.0, 60.0, 3600.0])
def test_a_renewal_that_hangs_leaves_time_for_another_before_the_fence(lease: float) -> None:
    assert lease / 4 + renewal_timeout(lease) <= lease - safety_margin(lease)


def test_everything_held_is_renewed_in_one_statement(scene: Scene) -> None:
    tasks = [scene.hold() for _ in range(5)]
    scene.renewer.renew()
    assert scene.store.asked == [([(task.claimed.id, 1) for task in tasks], LEASE)]


def test_nothing_held_needs_no_connection(scene: Scene) -> None:
    scene.make(LEASE, lambda: pytest.fail("connected")).renew()
    assert scene.store.asked == []


def test_an_extended_task_is_renewed_for_its_own_time(scene: Scene) -> None:
    usual, extended = scene.hold(), scene.hold(600.0)
    scene.clock.now += 10
    scene.renewer.renew()
    assert [lease for _, lease in scene.store.asked] == [LEASE, 600.0]
    assert usual.deadline == scene.clock.now + 48
    assert extended.deadline == scene.clock.now + 480


def test_a_row_that_somebody_has_locked_is_not_lost_and_its_deadline_stays(scene: Scene) -> None:
    free, locked = scene.hold(), scene.hold()
    scene.store.locked.add(locked.claimed.id)
    before = locked.deadline
    scene.clock.now += 10
    scene.renewer.renew()
    assert free.deadline > before
    assert (locked.deadline, locked.lost) == (before, False)


def test_trust_counts_from_before_the_renewal_was_sent(scene: Scene) -> None:
    task = scene.hold()
    sent_at = scene.clock.now = scene.clock.now + 15

    def slow() -> None:
        scene.clock.now += 20

    scene.store.meanwhile = slow
    scene.renewer.renew()
    assert task.deadline == sent_at + LEASE - safety_margin(LEASE)


def test_a_row_that_is_no_longer_held_is_lost_at_once(scene: Scene) -> None:
    gone, kept = scene.hold(), scene.hold()
    events: list[telemetry.Event] = []
    unsubscribe = telemetry.subscribe(events.append)
    scene.store.gone.add(gone.claimed.id)
    scene.renewer.renew()
    scene.renewer.renew()
    unsubscribe()
    assert scene.lost == [gone.claimed.id]
    assert gone.lost_event().is_set()
    assert not kept.lost
    assert events == [telemetry.LeasesLost((gone.claimed.id,))]
    assert scene.store.asked[-1][0] == [(kept.claimed.id, 1)]


def test_a_task_that_is_being_finished_is_not_lost(scene: Scene) -> None:
    task = scene.hold()
    task.finishing = True
    scene.store.gone.add(task.claimed.id)
    scene.renewer.renew()
    assert scene.lost == []


def test_a_task_given_back_and_claimed_again_meanwhile_is_not_lost(scene: Scene) -> None:
    first = scene.hold()
    scene.store.gone.add(first.claimed.id)

    def again() -> None:
        scene.held.remove_all([first.pair])
        scene.hold(epoch=3, task_id=first.claimed.id)

    scene.store.meanwhile = again
    scene.renewer.renew()
    assert scene.lost == []


def test_without_an_answer_the_task_is_given_up_before_its_lease_ends(scene: Scene) -> None:
    task = scene.hold()
    scene.clock.now += LEASE - safety_margin(LEASE) - 0.01
    scene.renewer.fence()
    assert scene.lost == []
    scene.clock.now += 0.01
    scene.renewer.fence()
    scene.renewer.fence()
    assert scene.lost == [task.claimed.id]


def test_on_sqlite_our_own_write_lock_keeps_everything(scene: Scene) -> None:
    task = scene.hold()
    scene.held.owns_write_lock = True
    scene.clock.now += 10 * LEASE
    scene.renewer.fence()
    scene.held.owns_write_lock = False
    scene.renewer.fence()
    assert scene.lost == []
    scene.renewer.renew()
    scene.clock.now += safety_margin(LEASE)
    scene.renewer.fence()
    assert scene.lost == []
    assert task.deadline > scene.clock.now


def test_on_sqlite_a_renewal_that_fails_after_our_lock_is_free_fences(scene: Scene) -> None:
    task = scene.hold()
    scene.held.owns_write_lock = True
    scene.clock.now += 10 * LEASE
    scene.renewer.fence()
    scene.held.owns_write_lock = False
    scene.renewer.fence()
    scene.clock.now += safety_margin(LEASE)
    scene.renewer.fence()
    assert scene.lost == [task.claimed.id]


def test_the_threads_renew_go_on_after_errors_and_close_their_lane(scene: Scene) -> None:
    scene.hold()
    scene.store.error = OperationalError("renew", {}, Exception("server is restarting"))
    renewer = scene.make(LEASE)
    renewer.start()
    eventually(lambda: len(scene.store.asked) >= 2)
    scene.store.error = RuntimeError("what a driver should not raise")
    count = len(scene.store.asked)
    eventually(lambda: len(scene.store.asked) > count)
    scene.store.error = None
    renewer.renew_now()
    renewer.stop(30)
    assert scene.lane.closed.is_set()
    assert scene.lost == []


def test_a_renewal_that_hangs_in_the_driver_does_not_stop_the_fence(scene: Scene) -> None:
    task = scene.hold()
    entered, release = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        release.wait(60)

    scene.store.meanwhile = hang
    renewer = scene.make(LEASE)
    renewer.start()
    assert entered.wait(30)
    scene.clock.now += LEASE
    eventually(lambda: scene.lost == [task.claimed.id])
    assert task.lost_event().is_set()
    release.set()
    renewer.stop(30)
