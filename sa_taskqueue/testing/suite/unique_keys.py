"""Unique keys: one task for each key, race-free, and no duplicate spoils the caller's transaction."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sa_taskqueue.exceptions import DuplicateTask, TaskRunning
from sa_taskqueue.session import TaskSession, duplicate_of
from sa_taskqueue.states import Status
from sa_taskqueue.testing.models import SuiteEffect
from sa_taskqueue.testing.trial import Trial

CALLERS = 6


def test_a_duplicate_is_left_out_and_the_transaction_goes_on(db: Trial) -> None:
    once = db.task().using(unique_key="once \U0001f680")
    known = db.put(once, 1)

    def again(session: TaskSession) -> Any:
        session.add(SuiteEffect(note="before"))
        duplicate = session.enqueue(once, 2)
        session.flush()
        session.add(SuiteEffect(note="after"))
        return duplicate_of(duplicate)

    assert db.session(again) == known
    assert [row.id for row in db.rows()] == [known]
    assert db.effects() == ["after", "before"]


def test_keys_differ_by_case_accent_and_space(db: Trial) -> None:
    work = db.task()
    for key in ("key", "KEY", "kéy", "key ", "ke\u0301y"):
        db.put(work.using(unique_key=key), 1)
    assert db.statuses() == {Status.NEW: 5}


def test_of_callers_at_once_one_stores_the_task_and_all_commit(db: Trial) -> None:
    once = db.task().using(unique_key="once")
    together = threading.Barrier(CALLERS)

    def call(n: int) -> None:
        def enqueue(session: TaskSession) -> None:
            session.add(SuiteEffect(note=str(n)))
            session.enqueue(once, n)

        together.wait(60)
        db.session(enqueue)

    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(call, range(CALLERS)))
    assert len(db.rows()) == 1
    assert db.effects() == [str(n) for n in range(CALLERS)]


def test_raise_names_the_task_that_holds_the_key(db: Trial) -> None:
    once = db.task().using(unique_key="once", on_duplicate="raise")
    known = db.put(once, 1)
    with pytest.raises(DuplicateTask) as raised:
        db.put(once, 2)
    assert (raised.value.id, raised.value.key) == (known, "once")
    assert [row.id for row in db.rows()] == [known]


def test_replace_gives_the_waiting_task_the_new_values(db: Trial) -> None:
    once = db.task().using(unique_key="once", on_duplicate="replace")
    known = db.put(once, 1)
    db.put(once, 2)
    [row] = db.rows()
    assert (row.id, row.status) == (known, Status.NEW)
    assert row.body.replace(" ", "") == '{"n":2}'
    assert row.epoch == 1


def test_replace_of_a_task_that_runs_is_refused_by_name(db: Trial) -> None:
    once = db.task().using(unique_key="once", on_duplicate="replace")
    db.put(once, 1)
    db.holder().claim()
    with pytest.raises(TaskRunning):
        db.put(once, 2)


def test_a_key_is_free_when_the_task_has_ended(trial: Trial) -> None:
    once = trial.task().using(unique_key="once")
    trial.put(once, 1)
    trial.put(once, 2)
    trial.drain()
    trial.put(once, 3)
    assert trial.statuses() == {Status.COMPLETED: 1, Status.NEW: 1}


def test_a_key_until_the_start_is_free_when_the_first_attempt_has_failed(trial: Trial) -> None:
    @trial.queue.task
    def work(n: int) -> None: ...

    once = work.using(unique_key="once", unique_until="start")
    first = trial.put(once, 1)
    holder = trial.holder()
    holder.settle(holder.claim(), Status.SCHEDULED, delay=3600.0, error='{"code":"error"}')
    second = trial.put(once, 2)
    assert [row.status for row in trial.rows([first, second])] == [Status.SCHEDULED, Status.NEW]


def test_a_key_is_kept_over_a_retry(trial: Trial) -> None:
    once = trial.task().using(unique_key="once")
    trial.put(once, 1)
    holder = trial.holder()
    holder.settle(holder.claim(), Status.SCHEDULED, delay=3600.0, error='{"code":"error"}')
    trial.put(once, 2)
    assert trial.statuses() == {Status.SCHEDULED: 1}
