"""Two transactions with the same key: the second waits for the first, and is then answered rightly."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Table, func, select, text, update
from sqlalchemy.exc import DBAPIError

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import TaskRunning
from sa_taskqueue.states import Status
from sa_taskqueue.store import unique
from sa_taskqueue.store.inserts import insert_many
from sa_taskqueue.store.unique import Answer, Insertion, insert_unique
from tests.store.new_tasks import keyed_task
from tests.support import TIMEOUT, eventually

SESSION = {
    "postgresql": "SELECT pg_backend_pid()",
    "mysql": "SELECT connection_id()",
    "mariadb": "SELECT connection_id()",
}
WAITS = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = :id",
    "mysql": """
        SELECT count(*) FROM performance_schema.data_lock_waits AS wait
        JOIN performance_schema.threads AS thread ON thread.thread_id = wait.requesting_thread_id
        WHERE thread.processlist_id = :id""",
    "mariadb": """
        SELECT count(*) FROM information_schema.innodb_trx
        WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id = :id""",
}
# MariaDB shows the same old table to whoever reads it again within 100 ms.
BETWEEN_LOOKS = 0.2
SERVERS = pytest.mark.servers("postgresql", "mysql", "mariadb", "postgresql18")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time until the first transaction ends."""
    monkeypatch.setattr(unique, "PATIENCE", int(TIMEOUT))


class Second:
    """A transaction in a thread of its own."""

    def __init__(self, engine: Engine, server: str, level: str | None = None) -> None:
        self._engine = engine if level is None else engine.execution_options(isolation_level=level)
        self._server = server.rstrip("0123456789")
        self._session: int | None = None
        self._ready = threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def start(self, work: Callable[[Connection], Insertion]) -> Future[Insertion]:
        """Run `work`, and return once it waits for a lock (on SQLite: once it is about to)."""
        self._ready.clear()
        future = self._pool.submit(self._run, work)
        assert self._ready.wait(TIMEOUT)
        if self._session is not None:
            eventually(lambda: future.done() or self._waits())
        return future

    def _run(self, work: Callable[[Connection], Insertion]) -> Insertion:
        if self._server == "sqlite":
            self._ready.set()
        with self._engine.begin() as connection:
            if self._server != "sqlite":
                self._session = connection.scalar(text(SESSION[self._server]))
                self._ready.set()
            return work(connection)

    def _waits(self) -> bool:
        threading.Event().wait(BETWEEN_LOOKS)
        with self._engine.connect() as connection:
            return bool(connection.scalar(text(WAITS[self._server]), {"id": self._session}))

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture(params=["default", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def level(request: pytest.FixtureRequest, engine: Engine) -> str | None:
    if request.param == "default":
        return None
    if engine.dialect.name == "sqlite":
        return "SERIALIZABLE"
    return str(request.param)


@pytest.fixture
def second(engine: Engine, server: str, level: str | None) -> Iterator[Second]:
    second = Second(engine, server, level)
    with contextlib.closing(second):
        yield second


@contextlib.contextmanager
def first(engine: Engine, tasks: Table) -> Iterator[tuple[Connection, uuid.UUID]]:
    """A transaction that has stored the key and is still open."""
    with engine.connect() as connection:
        yield connection, insert_unique(connection, tasks, keyed_task("k")).id


def stored(engine: Engine, tasks: Table) -> list[uuid.UUID]:
    with engine.connect() as connection:
        return list(connection.scalars(select(tasks.c.id)))


def test_the_second_task_is_stored_when_the_first_transaction_rolls_back(
    engine: Engine, tasks: Table, second: Second
) -> None:
    task = keyed_task("k")
    with first(engine, tasks) as (connection, _):
        future = second.start(lambda connection: insert_unique(connection, tasks, task))
        connection.rollback()
    assert future.result(TIMEOUT) == (task.id, Answer.INSERTED)
    assert stored(engine, tasks) == [task.id]


def test_the_second_task_is_a_duplicate_when_the_first_transaction_commits(
    engine: Engine, tasks: Table, second: Second, level: str | None
) -> None:
    with first(engine, tasks) as (connection, holder):
        future = second.start(lambda connection: insert_unique(connection, tasks, keyed_task("k")))
        connection.commit()
    if engine.dialect.name == "postgresql" and level in ("REPEATABLE READ", "SERIALIZABLE"):
        with pytest.raises(DBAPIError) as caught:
            future.result(TIMEOUT)
        assert adapter_for(engine.dialect).classify(caught.value) is ErrorKind.SERIALIZATION
        future = second.start(lambda connection: insert_unique(connection, tasks, keyed_task("k")))
    assert future.result(TIMEOUT) == (holder, Answer.DUPLICATE)
    assert stored(engine, tasks) == [holder]


def test_replace_waits_and_changes_the_first_task(engine: Engine, server: str, tasks: Table) -> None:
    second = Second(engine, server)
    with contextlib.closing(second), first(engine, tasks) as (connection, holder):
        newer = keyed_task("k", "replace", body='{"newer":1}')
        future = second.start(lambda connection: insert_unique(connection, tasks, newer))
        connection.commit()
        assert future.result(TIMEOUT) == (holder, Answer.REPLACED)


@pytest.mark.servers("mysql", "mariadb")
def test_a_snapshot_too_old_to_see_the_holder_is_answered_all_the_same(engine: Engine, tasks: Table) -> None:
    old = engine.execution_options(isolation_level="REPEATABLE READ")
    with old.connect() as connection:
        connection.scalar(select(func.count()).select_from(tasks))
        with engine.begin() as other:
            holder = insert_unique(other, tasks, keyed_task("k")).id
            running = insert_unique(other, tasks, keyed_task("r")).id
            other.execute(update(tasks).where(tasks.c.id == running).values(status=Status.RUNNING))
        nobody = uuid.UUID(int=0)
        assert insert_unique(connection, tasks, keyed_task("k")) == (nobody, Answer.DUPLICATE)
        assert insert_unique(connection, tasks, keyed_task("k", "replace")) == (holder, Answer.REPLACED)
        with pytest.raises(TaskRunning):
            insert_unique(connection, tasks, keyed_task("r", "replace"))


@SERVERS
def test_a_duplicate_leaves_no_lock_on_the_task_that_holds_the_key(engine: Engine, tasks: Table) -> None:
    with engine.begin() as connection:
        holder = insert_unique(connection, tasks, keyed_task("k")).id
    with engine.connect() as producer:
        assert insert_unique(producer, tasks, keyed_task("k")).answer is Answer.DUPLICATE
        with engine.begin() as worker:
            wait_briefly(worker)
            change = update(tasks).where(tasks.c.id == holder).values(status=Status.COMPLETED, unique_hash=None)
            assert worker.execute(change).rowcount == 1
        producer.commit()


@SERVERS
def test_the_wait_for_a_key_is_bounded_by_the_servers_lock_timeout(engine: Engine, tasks: Table) -> None:
    with first(engine, tasks), engine.connect() as connection:
        wait_briefly(connection)
        with pytest.raises(DBAPIError) as caught:
            insert_unique(connection, tasks, keyed_task("k"))
        assert adapter_for(engine.dialect).classify(caught.value) is ErrorKind.LOCK_TIMEOUT


def test_opposite_orders_of_keys_do_not_deadlock(engine: Engine, tasks: Table) -> None:
    keys = [f"k{number}" for number in range(20)]
    barrier = threading.Barrier(2)

    def bulk(order: list[str]) -> None:
        for _ in range(10):
            barrier.wait(TIMEOUT)
            with engine.connect() as connection:
                insert_many(connection, tasks, [keyed_task(key) for key in order])
                connection.rollback()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(bulk, keys), pool.submit(bulk, keys[::-1])]:
            future.result(TIMEOUT)


def test_of_many_producers_one_stores_the_task(engine: Engine, tasks: Table) -> None:
    barrier = threading.Barrier(4)

    def produce(_: int) -> list[Answer]:
        answers = []
        for number in range(10):
            barrier.wait(TIMEOUT)
            with engine.begin() as connection:
                answers.append(insert_unique(connection, tasks, keyed_task(f"k{number}")).answer)
        return answers

    with ThreadPoolExecutor(4) as pool:
        answers: list[Any] = list(pool.map(produce, range(4)))
    assert [sorted(answer.value for answer in each) for each in zip(*answers, strict=True)] == [
        ["duplicate", "duplicate", "duplicate", "inserted"]
    ] * 10
    assert len(stored(engine, tasks)) == 10


def wait_briefly(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = '1s'"))
    else:
        connection.execute(text("SET SESSION innodb_lock_wait_timeout = 1"))


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_deadlock_of_two_keys_is_told_as_a_deadlock(engine: Engine, tasks: Table, server: str) -> None:
    def other_order(connection: Connection) -> Insertion:
        insert_unique(connection, tasks, keyed_task("b"))
        return insert_unique(connection, tasks, keyed_task("a"))

    errors: list[BaseException] = []
    with contextlib.suppress(DBAPIError), engine.begin() as connection:
        insert_unique(connection, tasks, keyed_task("a"))
        second = Second(engine, server).start(other_order)
        try:
            insert_unique(connection, tasks, keyed_task("b"))
        except DBAPIError as error:
            errors.append(error)
            raise
    failure = second.exception(TIMEOUT)
    errors += [failure] if failure is not None else []

    assert [adapter_for(engine.dialect).classify(error) for error in errors] == [ErrorKind.DEADLOCK]
