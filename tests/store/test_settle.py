from __future__ import annotations

import datetime as dt
import json

from sa_taskqueue.states import TERMINAL, Status
from sa_taskqueue.store import Claimed, Settlement
from tests.store.bench import Bench


def settle(bench: Bench, *settlements: Settlement) -> set[object]:
    with bench.transaction() as connection:
        return set(bench.store.settle(connection, settlements))


def ended(task: Claimed, status: Status = Status.COMPLETED, **values: object) -> Settlement:
    return Settlement(task.id, task.epoch, status, **values)  # type: ignore[arg-type]


def test_an_end_is_written_and_nobody_holds_the_row(every_bench: Bench) -> None:
    for status in sorted(TERMINAL):
        every_bench.add(unique_key="k", unique_hash=b"k" * 32, unique_until="end")
        [task] = every_bench.claim()

        assert settle(every_bench, ended(task, status, error='{"code": "x"}')) == {task.id}

        row = every_bench.row(task.id)
        assert row.status == status
        assert row.finished_at >= row.created_at
        assert (row.reserved_until, row.reserved_by, row.unique_hash) == (None, None, None)
        assert (row.attempt, row.epoch) == (1, 1)


def test_many_completions_at_once(every_bench: Bench) -> None:
    every_bench.add(60)
    tasks = every_bench.claim(60)

    assert len(settle(every_bench, *map(ended, tasks))) == 60
    assert every_bench.count(Status.COMPLETED) == 60


def test_each_row_gets_its_own_result(every_bench: Bench) -> None:
    every_bench.add(20)
    tasks = every_bench.claim(20)

    settle(every_bench, *(ended(task, result=json.dumps({"number": number})) for number, task in enumerate(tasks)))

    assert [json.loads(every_bench.row(task.id).result)["number"] for task in tasks] == list(range(20))


def test_a_retry_waits_for_its_delay_with_error_and_history(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    settle(every_bench, ended(task, Status.SCHEDULED, delay=120, error='{"e": 1}', errors='[{"e": 1}]'))

    row = every_bench.row(task.id)
    assert (row.status, row.attempt, row.epoch) == (Status.SCHEDULED, 1, 1)
    assert (json.loads(row.error), json.loads(row.errors)) == ({"e": 1}, [{"e": 1}])
    assert (row.reserved_until, row.finished_at) == (None, None)
    assert dt.timedelta(seconds=119) < row.scheduled_at - row.created_at < dt.timedelta(seconds=600)


def test_a_retry_without_delay_is_new_at_once_and_last_in_the_queue(every_bench: Bench) -> None:
    [first, second] = every_bench.add(2)
    [task] = every_bench.claim(1)

    settle(every_bench, ended(task, Status.SCHEDULED))

    assert every_bench.row(first).status == Status.NEW
    assert [claimed.id for claimed in every_bench.claim()] == [second, first]


def test_an_attempt_that_does_not_count_is_taken_off(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    settle(every_bench, ended(task, Status.SCHEDULED, delay=5.5, count_attempt=False))

    assert every_bench.row(task.id).attempt == 0


def test_no_error_given_keeps_the_one_before(every_bench: Bench) -> None:
    every_bench.add(error='{"e": 1}', errors='[{"e": 1}]')
    [task] = every_bench.claim()
    assert json.loads(task.error or "") == {"e": 1}

    settle(every_bench, ended(task, result="1"))

    row = every_bench.row(task.id)
    assert (json.loads(row.error), json.loads(row.errors), json.loads(row.result)) == ({"e": 1}, [{"e": 1}], 1)


def test_a_task_can_be_deleted_at_its_end(every_bench: Bench) -> None:
    [kept, *_] = every_bench.add(3)
    [_, *others] = every_bench.claim(3)

    assert settle(every_bench, *(ended(task, delete=True) for task in others)) == {task.id for task in others}
    assert list(every_bench.statuses()) == [kept]


def test_ends_of_every_kind_in_one_call(every_bench: Bench) -> None:
    every_bench.add(5)
    one, two, three, four, five = every_bench.claim(5)

    changed = settle(
        every_bench,
        ended(five, Status.FAILED, error='{"code": "x"}'),
        ended(four, Status.SCHEDULED, delay=60),
        ended(three, delete=True),
        ended(two, result="2"),
        ended(one),
    )

    assert changed == {one.id, two.id, three.id, four.id, five.id}
    assert every_bench.statuses() == {
        one.id: Status.COMPLETED,
        two.id: Status.COMPLETED,
        four.id: Status.SCHEDULED,
        five.id: Status.FAILED,
    }


def test_a_holder_of_an_old_epoch_changes_nothing(every_bench: Bench) -> None:
    [task] = every_bench.add()
    [old] = every_bench.claim(lease=-1.0)
    with every_bench.transaction() as connection:
        every_bench.store.take_over(connection, 10, max_crashes=3)
    [new] = every_bench.claim(by="other")
    before = every_bench.row(task)

    for late in (
        ended(old),
        ended(old, result="1"),
        ended(old, Status.FAILED, error="{}"),
        ended(old, Status.SCHEDULED, delay=1.0),
        ended(old, delete=True),
    ):
        assert settle(every_bench, late) == set()
        assert every_bench.row(task) == before
    assert settle(every_bench, ended(new)) == {task}


def test_one_epoch_is_finished_once(every_bench: Bench) -> None:
    every_bench.add()
    [task] = every_bench.claim()

    assert settle(every_bench, ended(task)) == {task.id}
    assert settle(every_bench, ended(task, Status.FAILED, error="{}")) == set()
    assert every_bench.statuses()[task.id] is Status.COMPLETED


def test_a_stale_row_does_not_spoil_the_others_of_its_batch(every_bench: Bench) -> None:
    every_bench.add(3)
    one, two, three = every_bench.claim(3)
    stale = Settlement(two.id, two.epoch + 7, Status.COMPLETED)

    assert settle(every_bench, ended(one), stale, ended(three)) == {one.id, three.id}


def test_nothing_to_settle_is_nothing(every_bench: Bench) -> None:
    assert settle(every_bench) == set()
