from __future__ import annotations

import datetime as dt
import threading

import pytest
from sqlalchemy import literal_column, text, update
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.states import Status
from tests.store.bench import Bench

PAST = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_a_claim_raises_attempt_and_epoch_and_holds_the_row_for_the_lease(every_bench: Bench) -> None:
    [task] = every_bench.add(priority=3, headers='{"trace": "1"}', max_attempts=4)

    [claimed] = every_bench.claim(lease=3600.0, by="host-7")

    row = every_bench.row(task)
    assert (claimed.id, claimed.name, claimed.queue, claimed.priority) == (task, "send", "mail", 3)
    assert (claimed.attempt, claimed.epoch, claimed.crashes, claimed.max_attempts) == (1, 1, 0, 4)
    assert claimed.scheduled_at.tzinfo is dt.UTC
    assert claimed.created_at == row.created_at
    assert (row.status, row.attempt, row.epoch, row.reserved_by) == (Status.RUNNING, 1, 1, "host-7")
    assert dt.timedelta(minutes=59) < row.reserved_until - row.created_at < dt.timedelta(minutes=70)


def test_body_and_headers_come_as_json_text(every_bench: Bench) -> None:
    every_bench.add(body='{"to": "änn 🐘"}', headers='{"tenant": "7"}')

    [claimed] = every_bench.claim()

    assert claimed.body == '{"to": "änn 🐘"}'
    assert claimed.headers == '{"tenant": "7"}'
    assert claimed.errors is None


def test_rows_come_in_the_order_of_priority_then_age(every_bench: Bench) -> None:
    late = every_bench.add(2, priority=5)
    urgent = every_bench.add(2, priority=-5)
    usual = every_bench.add(2)
    every_bench.change(usual[1:], ready_at=PAST)

    claimed = [task.id for task in every_bench.claim()]

    assert claimed == [*urgent, usual[1], usual[0], *late]


def test_a_claim_takes_no_more_than_the_limit_and_the_first_of_the_order(every_bench: Bench) -> None:
    every_bench.add(5, priority=9)
    urgent = every_bench.add(3)

    assert {task.id for task in every_bench.claim(3)} == set(urgent)
    assert every_bench.count(Status.NEW) == 5


def test_only_new_rows_are_claimed(every_bench: Bench) -> None:
    for status in set(Status) - {Status.NEW}:
        every_bench.add(status=status)

    assert every_bench.claim() == []


def test_other_queues_are_left_alone(every_bench: Bench) -> None:
    every_bench.add(queue="reports")

    assert every_bench.claim(queue="mail") == []
    assert len(every_bench.claim(queue="reports")) == 1


def test_a_claimed_row_is_not_claimed_again(every_bench: Bench) -> None:
    every_bench.add(3)

    assert [len(every_bench.claim(2)) for _ in range(3)] == [2, 1, 0]


def test_a_rolled_back_claim_leaves_the_rows_as_they_were(every_bench: Bench) -> None:
    [task] = every_bench.add()

    with every_bench.engine.connect() as connection:
        every_bench.adapter.begin(connection)
        assert len(every_bench.store.claim(connection, "mail", 5, lease=60, by="w")) == 1
        connection.rollback()

    row = every_bench.row(task)
    assert (row.status, row.attempt, row.epoch) == (Status.NEW, 0, 0)


def test_a_key_held_until_the_start_is_free_after_the_claim(every_bench: Bench) -> None:
    [until_start] = every_bench.add(unique_key="s", unique_hash=b"s" * 32, unique_until="start")
    [until_end] = every_bench.add(unique_key="e", unique_hash=b"e" * 32, unique_until="end")

    every_bench.claim()

    assert every_bench.row(until_start).unique_hash is None
    assert every_bench.row(until_end).unique_hash == b"e" * 32


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_second_worker_gets_its_rows_while_the_first_has_not_committed(bench: Bench) -> None:
    ids = bench.add(10)

    with bench.transaction() as first:
        mine = bench.store.claim(first, "mail", 5, lease=60, by="one")
        with bench.transaction() as second:
            others = bench.store.claim(second, "mail", 5, lease=60, by="two")

    assert [task.id for task in mine] == ids[:5]
    assert [task.id for task in others] == ids[5:]


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_second_worker_gets_its_rows_behind_500_leased_ones(bench: Bench) -> None:
    bench.add(500)
    free = bench.add(10)
    bench.claim(500)

    with bench.transaction() as first:
        bench.store.claim(first, "mail", 5, lease=60, by="one")
        with bench.transaction() as second:
            others = bench.store.claim(second, "mail", 5, lease=60, by="two")

    assert [task.id for task in others] == free[5:]


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_producer_is_not_blocked_by_an_open_claim(bench: Bench) -> None:
    bench.add(3)

    with bench.transaction() as connection:
        assert len(bench.store.claim(connection, "mail", 10, lease=60, by="w")) == 3
        bench.add(1)
        bench.add(1, queue="other")

    assert len(bench.claim()) == 1


@pytest.mark.servers("postgresql")
def test_a_child_row_in_an_open_transaction_does_not_hide_the_task(bench: Bench) -> None:
    [task] = bench.add()
    with bench.transaction() as connection:
        connection.execute(text("CREATE TABLE child (task_id uuid REFERENCES task (id))"))
    try:
        with bench.transaction() as producer:
            producer.execute(text("INSERT INTO child VALUES (:task)"), {"task": task})
            assert [claimed.id for claimed in bench.claim()] == [task]
    finally:
        with bench.transaction() as connection:
            connection.execute(text("DROP TABLE child"))


def test_many_workers_share_the_rows_and_none_is_taken_twice(every_bench: Bench) -> None:
    ids = every_bench.add(120)
    taken: list[object] = []
    errors: list[BaseException] = []

    def work() -> None:
        while len(taken) < len(ids) and not errors:
            try:
                taken.extend(task.id for task in every_bench.claim(7))
            except DBAPIError as error:
                if not every_bench.adapter.classify(error).retryable:
                    errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert sorted(map(str, taken)) == sorted(map(str, ids))


@pytest.mark.servers("sqlite")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("created_at", "'yesterday'"),
        ("scheduled_at", "12"),
        ("max_attempts", "'many'"),
        ("body", "x'00ff'"),
        ("name", "x'41'"),
    ],
)
def test_a_row_with_a_value_of_another_type_fails_alone(every_bench: Bench, column: str, value: str) -> None:
    ids = every_bench.add(3)
    with every_bench.transaction() as connection:
        bad = update(every_bench.table).where(every_bench.table.c.id == ids[1])
        connection.execute(bad.values({column: literal_column(value)}))

    claimed = every_bench.claim()

    assert [task.id for task in claimed] == [ids[0], ids[2]]
    assert every_bench.statuses()[ids[1]] is Status.FAILED
    with every_bench.transaction() as connection:
        error = connection.exec_driver_sql("SELECT error FROM task WHERE status = 'FAILED'").scalar_one()
    assert '"code": "undecodable"' in error


@pytest.mark.servers("sqlite", "postgresql")
def test_a_row_the_driver_cannot_fetch_is_found_by_the_next_claim(every_bench: Bench) -> None:
    ids = every_bench.add(4)
    bad = update(every_bench.table).where(every_bench.table.c.id.in_(ids[1:3]))
    sqlite = every_bench.engine.dialect.name == "sqlite"
    column, value = ("body", "CAST(x'ff' AS TEXT)") if sqlite else ("created_at", "'infinity'")
    with every_bench.transaction() as connection:
        connection.execute(bad.values({column: literal_column(value)}))

    with pytest.raises(DBAPIError):
        every_bench.claim()
    claimed = every_bench.claim()

    assert [task.id for task in claimed] == [ids[0], ids[3]]
    assert every_bench.count(Status.FAILED) == 2
