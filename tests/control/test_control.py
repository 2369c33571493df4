"""What operators do, over an Engine and an AsyncEngine."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Engine, Table, select, update

from sa_taskqueue.control import Choice, Control
from sa_taskqueue.exceptions import InvalidSetting, SchemaMissing
from sa_taskqueue.ids import new_id
from sa_taskqueue.models import QueueMixin
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.states import Status
from sa_taskqueue.store.inserts import insert_many
from tests.models import Base, Task
from tests.store.new_tasks import keyed_task, new_task

LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
async def control(engine: Engine, tasks: Table) -> AsyncIterator[Control]:
    async with Control(TaskQueue(Task), engine) as control:
        yield control


def add(engine: Engine, tasks: Table, *new: Any, **values: Any) -> list[uuid.UUID]:
    with engine.begin() as connection:
        ids = insert_many(connection, tasks, new)
        if values:
            connection.execute(update(tasks).where(tasks.c.id.in_(ids)).values(values))
    return ids


def row(engine: Engine, tasks: Table, task_id: uuid.UUID) -> Any:
    with engine.connect() as connection:
        return connection.execute(select(tasks).where(tasks.c.id == task_id)).one()


async def test_tasks_are_listed_newest_first_page_by_page(control: Control, engine: Engine, tasks: Table) -> None:
    ids = add(engine, tasks, *(new_task() for _ in range(5)))
    page = await control.list_tasks(limit=3)
    assert [each.id for each in page] == ids[:1:-1]
    assert [each.id for each in await control.list_tasks(before=page[-1].id)] == ids[1::-1]


async def test_lists_are_limited_by_what_was_chosen(control: Control, engine: Engine, tasks: Table) -> None:
    [mail] = add(engine, tasks, new_task(queue="mail", name="a"))
    [other] = add(engine, tasks, new_task(queue="mail", name="b"), status=Status.FAILED)
    add(engine, tasks, new_task(name="a"))
    assert [each.id for each in await control.list_tasks(Choice(queue="mail", name="a"))] == [mail]
    assert [each.id for each in await control.list_tasks(statuses=[Status.FAILED])] == [other]
    assert await control.list_tasks(Choice(ids=[])) == []
    found = await control.get(mail)
    assert found is not None
    assert (found.name, found.status, found.body) == ("a", Status.NEW, "{}")
    assert await control.get(new_id()) is None


@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED])
async def test_retry_makes_an_ended_task_new_with_its_counts_from_zero(
    control: Control, engine: Engine, tasks: Table, status: Status
) -> None:
    ended = {"status": status, "attempt": 10, "crashes": 3, "finished_at": LONG_AGO, "ready_at": LONG_AGO, "epoch": 7}
    ids = add(engine, tasks, new_task(), new_task(), **ended, error='{"type": "E"}')
    assert sorted((await control.retry(Choice(ids=ids))).ids) == sorted(ids)
    found = row(engine, tasks, ids[0])
    assert (found.status, found.attempt, found.crashes, found.finished_at) == (Status.NEW, 0, 0, None)
    assert found.epoch == 8
    assert found.ready_at > LONG_AGO
    assert found.error is not None


@pytest.mark.parametrize("status", [Status.NEW, Status.SCHEDULED, Status.RUNNING, Status.COMPLETED])
async def test_retry_leaves_other_tasks_alone(control: Control, engine: Engine, tasks: Table, status: Status) -> None:
    ids = add(engine, tasks, new_task(), status=status)
    assert await control.retry(Choice(ids=ids)) == ([], [])
    assert row(engine, tasks, ids[0]).epoch == 0


async def test_retry_takes_the_unique_key_again_or_reports_the_conflict(
    control: Control, engine: Engine, tasks: Table
) -> None:
    ended = {"status": Status.FAILED, "unique_hash": None}
    [free, taken] = add(engine, tasks, keyed_task("free"), keyed_task("taken"), **ended)
    add(engine, tasks, keyed_task("taken"))
    assert await control.retry(Choice(ids=[free, taken])) == ([free], [taken])
    assert row(engine, tasks, free).unique_hash == keyed_task("free").unique_hash
    assert row(engine, tasks, taken).status is Status.FAILED
    with engine.begin() as connection:
        assert insert_many(connection, tasks, [keyed_task("free")]) == [free]


async def test_of_two_ended_tasks_with_one_key_one_is_revived(control: Control, engine: Engine, tasks: Table) -> None:
    ids = [
        *add(engine, tasks, keyed_task("k"), status=Status.FAILED, unique_hash=None),
        *add(engine, tasks, keyed_task("k"), status=Status.FAILED, unique_hash=None),
    ]
    retried = await control.retry(Choice())
    assert (len(retried.ids), len(retried.conflicts)) == (1, 1)
    assert {*retried.ids, *retried.conflicts} == set(ids)


async def test_cancel_ends_waiting_tasks_and_frees_their_keys(control: Control, engine: Engine, tasks: Table) -> None:
    ids = add(engine, tasks, keyed_task("k"), new_task(delay=dt.timedelta(hours=1)))
    assert sorted(await control.cancel(Choice(ids=ids))) == sorted(ids)
    found = row(engine, tasks, ids[0])
    assert (found.status, found.unique_hash, found.unique_key, found.epoch) == (Status.CANCELLED, None, "k", 1)
    assert found.finished_at is not None


async def test_a_running_task_is_cancelled_only_when_asked(control: Control, engine: Engine, tasks: Table) -> None:
    lease = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    ids = add(engine, tasks, new_task(), status=Status.RUNNING, reserved_until=lease, reserved_by="w", epoch=1)
    assert await control.cancel(Choice(ids=ids)) == []
    assert await control.cancel(Choice(ids=ids), running=True) == ids
    found = row(engine, tasks, ids[0])
    assert (found.status, found.epoch, found.reserved_until, found.reserved_by) == (Status.CANCELLED, 2, None, None)


async def test_all_of_a_queue_may_be_chosen_over_many_batches(
    control: Control, engine: Engine, tasks: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sa_taskqueue.control.control.BATCH", 4)
    mail = add(engine, tasks, *(new_task(queue="mail") for _ in range(9)))
    [other] = add(engine, tasks, new_task(queue="other"))
    assert sorted(await control.cancel(Choice(queue="mail"))) == sorted(mail)
    assert row(engine, tasks, other).status is Status.NEW
    assert sorted((await control.retry(Choice(queue="mail"))).ids) == sorted(mail)


async def test_prune_keeps_to_the_retention_unless_told_otherwise(
    engine: Engine, tasks: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sa_taskqueue.control.control.BATCH", 2)
    queue = TaskQueue(Task, retention={Status.FAILED: dt.timedelta(days=36_500)})
    add(engine, tasks, *(new_task() for _ in range(5)), status=Status.COMPLETED, finished_at=LONG_AGO)
    [failed] = add(engine, tasks, new_task(), status=Status.FAILED, finished_at=LONG_AGO)
    async with Control(queue, engine) as control:
        assert await control.prune() == 5
        assert await control.get(failed) is not None
        assert await control.prune([Status.FAILED], older_than=dt.timedelta(days=1)) == 1
        with pytest.raises(InvalidSetting):
            await control.prune([Status.NEW])


async def test_statistics_and_check(control: Control, engine: Engine, tasks: Table) -> None:
    add(engine, tasks, new_task(queue="mail"))
    [found] = await control.statistics()
    assert (found.queue, found.counts) == ("mail", {Status.NEW: 1})
    checked = await control.check()
    assert checked.table == "task"
    assert (engine.url.password or "no password") not in checked.database


async def test_check_names_the_missing_table(engine: Engine, tasks: Table) -> None:
    class Absent(QueueMixin, Base):
        __tablename__ = "absent_task"

    try:
        async with Control(TaskQueue(Absent), engine) as control:
            with pytest.raises(SchemaMissing, match="absent_task"):
                await control.check()
    finally:
        Base.metadata.remove(Absent.__table__)  # type: ignore[arg-type]
        Base.registry._dispose_cls(Absent)


async def test_an_async_engine_serves_as_well(async_engine: Any, tasks: Table) -> None:
    task = new_task()
    async with async_engine.begin() as connection:
        await connection.run_sync(insert_many, tasks, [task])
    async with Control(TaskQueue(Task), async_engine) as control:
        assert await control.cancel(Choice(ids=[task.id])) == [task.id]
        assert await control.retry(Choice(ids=[task.id])) == ([task.id], [])


async def test_control_must_be_entered(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await Control(TaskQueue(Task), engine).statistics()
