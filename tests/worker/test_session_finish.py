"""The commit of a handler's work, seen by a renewal that comes at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, Table, insert, select

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import LeaseLost
from sa_taskqueue.reservation import Lease
from sa_taskqueue.runtime import faults
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement
from sa_taskqueue.worker.held import HeldTask, HeldTasks
from sa_taskqueue.worker.session_scope import WorkConnections, WorkUnit
from tests.models import Effect
from tests.worker.test_held import hold


class Granting(Lease):
    """Finds every task still held, as far as the table is concerned."""

    def settle(self, connection: Connection, settlements: Sequence[Settlement]) -> set[UUID]:
        return {settlement.id for settlement in settlements}


@pytest.fixture
def held() -> HeldTasks:
    return HeldTasks()


@pytest.fixture
def task(held: HeldTasks) -> HeldTask:
    return hold(held)


@pytest.fixture
def unit(engine: Engine, tasks: Table, held: HeldTasks, task: HeldTask) -> Iterator[WorkUnit]:
    with engine.connect() as connection:
        adapter = adapter_for(connection.dialect)
    connections = WorkConnections(engine, adapter, is_async=False, at_most=1)
    unit = WorkUnit(connections, Granting(), held, [task])
    unit.session().execute(insert(Effect).values(task_id=str(task.claimed.id), note="done"))
    yield unit
    faults.install(None)
    unit.undo()
    connections._drop_idle()


def done(task: HeldTask) -> Settlement:
    return Settlement(task.claimed.id, task.claimed.epoch, Status.COMPLETED)


def effects(engine: Engine) -> int:
    with engine.connect() as connection:
        return len(connection.execute(select(Effect.__table__)).all())


def test_a_renewal_between_commit_and_count_has_not_lost_the_task(
    engine: Engine, held: HeldTasks, task: HeldTask, unit: WorkUnit
) -> None:
    lost: list[HeldTask | None] = []
    faults.install(lambda _name: lost.append(held.mark_lost(task.pair)))
    unit.complete([done(task)])
    assert lost == [None, None]
    assert not task.lost
    assert effects(engine) == 1


def test_a_task_whose_commit_failed_can_be_lost_again(held: HeldTasks, task: HeldTask, unit: WorkUnit) -> None:
    def fail(_name: str) -> None:
        raise ValueError("before the commit")

    faults.install(fail)
    with pytest.raises(ValueError, match="before the commit"):
        unit.complete([done(task)])
    assert held.mark_lost(task.pair) is task


def test_a_task_lost_before_its_commit_is_rolled_back(
    engine: Engine, held: HeldTasks, task: HeldTask, unit: WorkUnit
) -> None:
    held.mark_lost(task.pair)
    with pytest.raises(LeaseLost):
        unit.complete([done(task)])
    assert effects(engine) == 0
