"""Ordered messages: a key's numbers are in the order of the commits, without gaps, whatever rolls back (R03, R34)."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, insert, select, update
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue import KeyStatus, MessageStatus, TaskSession, new_id, publish
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.store.sequences import assign, assign_waiting
from tests.checks.source import ROOT
from tests.outbox.models import Account, Outbox, OutboxKey, queue

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]

PRODUCERS = 8
TRANSACTIONS = 30
KEYS = 5

OUTBOX: Any = Outbox.__table__
OUTBOX_KEYS: Any = OutboxKey.__table__


@pytest.fixture
def key(plain_engine: Engine) -> Callable[[str], Any]:
    def read(name: str) -> Any:
        with Session(plain_engine) as session:
            return session.get(OutboxKey, key_hash(name))

    return read


def test_a_key_counts_from_one_in_the_order_of_the_calls(
    factory: Factory, stored: Stored, key: Callable[[str], Any]
) -> None:
    for _ in range(2):
        with factory.begin() as session:
            for name in ("b", "a", "b"):
                session.publish("t", 1, key=name)
    assert stored("key", "seq") == [("b", 1), ("a", 1), ("b", 2), ("b", 3), ("a", 2), ("b", 4)]
    assert set(stored("status")) == {MessageStatus.QUEUED}
    found = key("b")
    assert (found.key, found.next_seq, found.sent_seq, found.status) == ("b", 5, 0, KeyStatus.READY)


def test_many_at_once_are_numbered_in_their_order(factory: Factory, stored: Stored) -> None:
    names = [str(number % 7) for number in range(333)]
    with factory.begin() as session:
        session.publish_many([{"topic": "t", "payload": None, "key": name} for name in names])
    assert stored("key", "seq") == [(name, number // 7 + 1) for number, name in enumerate(names)]
    assert set(stored("status")) == {MessageStatus.QUEUED}


def test_without_order_the_key_only_travels_along(factory: Factory, stored: Stored, key: Callable[[str], Any]) -> None:
    with factory.begin() as session:
        session.publish("t", 1, key="k", ordered=False)
        session.publish_many([{"topic": "t", "payload": 1, "key": "k", "ordered": False}])
    assert stored("key", "key_hash", "seq", "status") == [("k", None, None, MessageStatus.NEW)] * 2
    assert key("k") is None


def test_a_row_that_is_kept_shows_its_number_without_a_query(factory: Factory, engine: Engine) -> None:
    factory.configure(expire_on_commit=False)
    statements: list[str] = []
    with factory.begin() as session:
        row = session.publish("t", 1, key="k")
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    assert (row.seq, row.status) == (1, MessageStatus.QUEUED)
    assert statements == []


@pytest.mark.parametrize("state", ["IDLE", "READY", "BLOCKED"])
def test_a_key_that_sleeps_is_woken_and_one_that_is_held_back_is_not(
    factory: Factory, engine: Engine, key: Callable[[str], Any], state: str
) -> None:
    with factory.begin() as session:
        session.publish("t", 1, key="k")
    with engine.begin() as connection:
        connection.execute(update(OUTBOX_KEYS).values(status=state, sent_seq=1))
    before = key("k")
    with factory.begin() as session:
        session.publish("t", 2, key="k")
    after = key("k")
    assert (after.next_seq, after.sent_seq) == (3, 1)
    assert after.status == ("READY" if state == "IDLE" else state)
    assert (after.due_at > before.due_at) == (state == "IDLE")


def test_a_message_deleted_or_lost_with_a_savepoint_of_the_connection_leaves_no_gap(
    factory: Factory, stored: Stored
) -> None:
    """The session knows nothing of it: the database is asked which messages still stand."""
    with factory.begin() as session:
        session.publish("t", "kept", key="k")
        session.flush()
        savepoint = session.connection().begin_nested()
        session.publish("t", "lost", key="k")
        session.flush()
        savepoint.rollback()
        gone = session.publish("t", "deleted", key="k")
        session.flush()
        session.execute(OUTBOX.delete().where(OUTBOX.c.id == gone.id))
        session.publish("t", "kept", key="k")
    assert stored("payload", "seq") == [('"kept"', 1), ('"kept"', 2)]


def test_what_a_later_hook_publishes_is_left_to_the_relay(
    factory: Factory, engine: Engine, stored: Stored, key: Callable[[str], Any]
) -> None:
    with factory() as session:
        event.listen(session, "before_commit", lambda session: session.publish("t", "late", key="k"))
        session.publish("t", "early", key="k")
        session.commit()
    assert stored("payload", "seq", "status") == [
        ('"early"', 1, MessageStatus.QUEUED),
        ('"late"', None, MessageStatus.NEW),
    ]
    with engine.begin() as connection:
        assert assign_waiting(connection, OUTBOX, OUTBOX_KEYS, 10) == 1
    assert stored("seq") == [1, 2]
    assert key("k").next_seq == 3


def test_rows_of_writers_that_know_nothing_of_numbers_get_theirs_from_the_relay(
    engine: Engine, tables: None, stored: Stored, key: Callable[[str], Any]
) -> None:
    def row(name: str | None, **more: Any) -> dict[str, Any]:
        return {"id": new_id(), "topic": "t", "payload": "1", "key": name, "key_hash": name and key_hash(name), **more}

    with engine.begin() as connection:
        connection.execute(insert(OUTBOX), [row("b"), row(None), row("a"), row("b"), row("c")])
        connection.execute(insert(OUTBOX), [row("a", status="SCHEDULED")])
    with engine.begin() as connection:
        assert assign_waiting(connection, OUTBOX, OUTBOX_KEYS, 3) == 2
        assert assign_waiting(connection, OUTBOX, OUTBOX_KEYS, 3) == 2
        assert assign_waiting(connection, OUTBOX, OUTBOX_KEYS, 3) == 0
    assert stored("key", "seq") == [("b", 1), (None, None), ("a", 1), ("b", 2), ("c", 1), ("a", None)]
    assert key("a").status is KeyStatus.READY
    with engine.begin() as connection:
        assert assign(connection, OUTBOX, OUTBOX_KEYS, stored()) == {}


HASHES = {
    "postgresql": "encode(substr(sha256(convert_to({key}, 'UTF8')), 1, 16), 'hex')::uuid",
    "mysql": "UNHEX(LEFT(SHA2({key}, 256), 32))",
}


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_the_hash_of_a_key_can_be_made_in_sql_as_the_documentation_says(engine: Engine, tables: None) -> None:
    expression = HASHES["postgresql" if engine.dialect.name == "postgresql" else "mysql"]
    assert expression.replace("{key}", "key") in (ROOT / "docs/how-to/publish.md").read_text(encoding="utf-8")
    with engine.begin() as connection:
        connection.execute(insert(OUTBOX).values(id=new_id(), topic="t", payload="1", key="köln"))
        quoted = connection.dialect.identifier_preparer.quote("key")
        connection.exec_driver_sql(f"UPDATE ob_outbox SET key_hash = {expression.format(key=quoted)}")
        assert connection.scalar(select(OUTBOX.c.key_hash)) == key_hash("köln")


@pytest.mark.parametrize("mode", ["conditional_savepoint", "rollback_only", "control_fully", "create_savepoint"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_session_joined_to_a_transaction_numbers_at_its_own_commit(
    engine: Engine, tables: None, stored: Stored, mode: Any, commit: bool
) -> None:
    with engine.connect() as connection:
        outer = connection.begin()
        for _ in range(2):
            with Session(connection, join_transaction_mode=mode) as session:
                publish(session, queue, "t", 1, key="k")
                session.commit()
            if mode == "control_fully":
                break
        if outer.is_active:
            outer.commit() if commit else outer.rollback()
    expected = {"control_fully": [1]}.get(mode, [1, 2] if commit else [])
    assert stored("seq") == expected


@pytest.mark.servers("mysql", "mariadb")
def test_a_two_phase_session_numbers_before_it_prepares(engine: Engine, tables: None, stored: Stored) -> None:
    with sessionmaker(engine, class_=TaskSession, twophase=True, info={"task_queue": queue}).begin() as session:
        session.publish("t", 1, key="k")
    assert stored("seq") == [1]


@pytest.mark.servers("mysql", "mariadb", "postgresql")
@pytest.mark.parametrize(("end", "expected"), [("rollback", [1]), ("commit", [1, 2])])
def test_a_second_transaction_of_the_key_waits_for_the_first(
    factory: Factory, stored: Stored, end: str, expected: list[int]
) -> None:
    first = factory()
    row = first.publish("t", "first", key="k")
    first.flush()
    assign(first.connection(), OUTBOX, OUTBOX_KEYS, [row.id])  # as its commit would, which comes later
    begun = threading.Event()

    def second() -> None:
        with factory.begin() as session:
            session.publish("t", "second", key="k")
            session.flush()
            begun.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert begun.wait(60)
    assert stored("seq") == []
    getattr(first, end)()
    first.close()
    thread.join(60)
    assert stored("seq") == expected
    assert stored("payload")[-1] == '"second"'


class Producer(threading.Thread):
    """Commits, rolls back, and loses savepoints at random; remembers what failed."""

    def __init__(self, engine: Engine, seed: int) -> None:
        super().__init__()
        self._factory = sessionmaker(engine, class_=TaskSession, info={"task_queue": queue})
        self._random = random.Random(seed)
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for _ in range(TRANSACTIONS):
                self._transaction()
        except BaseException as error:
            self.error = error

    def _transaction(self) -> None:
        account = self._random.randrange(KEYS)
        with self._factory() as session:
            row = None
            if self._random.random() < 0.5:  # the message is written before the lock of what it tells about
                row = session.publish("account", None, key=str(account))
                session.flush()
            session.execute(update(Account).where(Account.id == account).values(balance=Account.balance + 1))
            version = session.scalar(select(Account.balance).where(Account.id == account))
            if row is None:
                row = session.publish("account", None, key=str(account))
            row.payload = json.dumps(version)
            with session.begin_nested() as savepoint:
                session.publish("other", None, key=str(self._random.randrange(KEYS)))
                if self._random.random() < 0.5:
                    savepoint.rollback()
            others = self._random.sample(range(KEYS + 20), self._random.randrange(4))
            session.publish_many([{"topic": "other", "payload": None, "key": str(each)} for each in others])
            session.commit() if self._random.random() < 0.8 else session.rollback()


class Reader(threading.Thread):
    """Looks at what is committed again and again: a gap in a key at any moment is a commit out of order."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self.stop = threading.Event()
        self.gaps: list[Any] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                with self._engine.connect() as connection:
                    self.gaps += gaps(connection)
                self.stop.wait(0.01)
        except BaseException as error:
            self.error = error


def gaps(connection: Connection) -> Iterator[Any]:
    seen: dict[str, list[int | None]] = {}
    for name, seq in connection.execute(select(OUTBOX.c.key, OUTBOX.c.seq)):
        seen.setdefault(name, []).append(seq)
    for name, found in seen.items():
        if None in found or sorted(found) != list(range(1, len(found) + 1)):  # type: ignore[type-var]
            yield name, found


def test_eight_producers_leave_no_gap_and_no_message_before_an_earlier_commit(
    engine: Engine, plain_engine: Engine, tables: None, seed: int
) -> None:
    with engine.begin() as connection:
        connection.execute(insert(Account.__table__), [{"id": number, "balance": 0} for number in range(KEYS)])  # type: ignore[arg-type]
    reader = Reader(plain_engine)
    producers = [Producer(engine, seed + number) for number in range(PRODUCERS)]
    for thread in (reader, *producers):
        thread.start()
    for producer in producers:
        producer.join(240)
    reader.stop.set()
    reader.join(60)
    assert [producer.error for producer in producers if producer.error] == []
    assert reader.error is None
    assert reader.gaps == []
    with Session(plain_engine) as session:
        assert list(gaps(session.connection())) == []
        history: dict[str, list[int]] = {}
        for name, payload in session.execute(
            select(Outbox.key, Outbox.payload).where(Outbox.topic == "account").order_by(Outbox.seq)
        ):
            history.setdefault(name or "", []).append(json.loads(payload))
        accounts = {str(account.id): account.balance for account in session.scalars(select(Account))}
        counts = {each.key: each.next_seq for each in session.scalars(select(OutboxKey))}
        last = {name: len(list(session.scalars(select(Outbox.id).where(Outbox.key == name)))) for name in counts}
    assert history == {name: list(range(1, balance + 1)) for name, balance in accounts.items() if balance}
    assert counts == {name: number + 1 for name, number in last.items()}
