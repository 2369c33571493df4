"""The inbox: a message is handled once, in order where it has one, and its mark commits with the handler's work."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Callable
from typing import Any, cast

import pytest
from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue import TaskQueue, TaskSession, first_time, install
from sa_taskqueue.control import Control
from sa_taskqueue.exceptions import InvalidMessage, InvalidSetting, MessageGap, MissingTable, TransactionEnded
from sa_taskqueue.store.inbox import prune_inbox
from tests.outbox.models import Account, Inbox, Task, bare, queue

Factory = sessionmaker[TaskSession]

INBOX: Any = Inbox.__table__


@pytest.fixture
def seen(plain_engine: Engine) -> Callable[[], list[Any]]:
    """Message and number of each committed row."""

    def read() -> list[Any]:
        with Session(plain_engine) as session:
            return sorted(tuple(row) for row in session.execute(select(Inbox.message_id, Inbox.seq)))

    return read


@pytest.fixture
def balance(plain_engine: Engine) -> Callable[[], int]:
    def read() -> int:
        with Session(plain_engine) as session:
            return session.scalar(select(func.coalesce(func.sum(Account.balance), 0))) or 0

    return read


def test_the_mark_commits_with_the_handlers_work_or_not_at_all(
    factory: Factory, seen: Callable[[], list[Any]], balance: Callable[[], int]
) -> None:
    def handle(end: str) -> bool:
        with factory() as session:
            new = session.first_time("m", source="/orders")
            if new:
                session.add(Account(id=1, balance=1))
            getattr(session, end)()
            return new

    assert handle("rollback") is True
    assert (seen(), balance()) == ([], 0)
    assert handle("commit") is True
    assert handle("commit") is False
    assert (seen(), balance()) == ([("m", None)], 1)


@pytest.mark.every_driver
async def test_on_an_async_session_it_is_awaited(async_factory: Any, seen: Callable[[], list[Any]]) -> None:
    for expected in (True, False):
        async with async_factory.begin() as session:
            savepoint = await session.begin_nested()
            await session.first_time("lost")
            await savepoint.rollback()
            assert await session.first_time("m") is expected
    assert seen() == [("m", None)]


def test_a_duplicate_leaves_the_transaction_as_it_was(factory: Factory, seen: Callable[[], list[Any]]) -> None:
    with factory.begin() as session:
        session.add(Account(id=1))
        assert session.first_time("m")
        assert not session.first_time("m")
        session.add(Account(id=2))
    with factory() as session:
        assert session.scalar(select(func.count()).select_from(Account)) == 2
    assert seen() == [("m", None)]


def test_ids_are_compared_as_they_are_written_and_by_source(factory: Factory) -> None:
    message_id = uuid.uuid4()
    with factory.begin() as session:
        assert all(session.first_time(each) for each in ("dup", "DUP ", "düp", "x" * 1024, message_id))
        assert session.first_time("dup", source="/other")
        assert not session.first_time(str(message_id))


@pytest.mark.every_driver
def test_a_key_takes_its_messages_in_order(factory: Factory, seen: Callable[[], list[Any]]) -> None:
    def ask(seq: int, **more: Any) -> bool:
        with factory.begin() as session:
            return session.first_time(f"m{seq}", source="/s", key="k", seq=seq, **more)

    assert ask(1)
    assert ask(2)
    assert not ask(1)
    assert not ask(2)
    with pytest.raises(MessageGap, match=r'number 4 of the key "k", but 2 was applied last') as caught:
        ask(4)
    assert (caught.value.seq, caught.value.last) == (4, 2)
    assert ask(3)
    assert ask(4)
    assert ask(7, gaps="accept")
    assert not ask(5, gaps="accept")
    assert seen() == [("m7", 7)]


def test_a_key_of_which_nothing_is_known_begins_with_one(factory: Factory, seen: Callable[[], list[Any]]) -> None:
    """Else the first message is lost when its handler fails once and the second is at hand."""
    with factory() as session:
        assert session.first_time("m1", key="k", seq=1)
        session.rollback()
    with factory() as session:
        with pytest.raises(MessageGap) as caught:
            session.first_time("m2", key="k", seq=2)
        assert (caught.value.seq, caught.value.last) == (2, None)
        session.rollback()
    with factory.begin() as session:
        assert session.first_time("m1", key="k", seq=1)
        assert session.first_time("m2", key="k", seq=2)
    assert seen() == [("m2", 2)]


def test_a_consumer_that_starts_late_accepts_any_number(factory: Factory) -> None:
    with factory.begin() as session:
        assert session.first_time("m", key="k", seq=41, gaps="accept")
        assert session.first_time("n", key="k", seq=42)
        assert session.first_time("n", source="/another", key="k", seq=7, gaps="accept")


def test_a_rolled_back_message_is_expected_again(factory: Factory) -> None:
    with factory.begin() as session:
        session.first_time("a", key="k", seq=1)
    with factory() as session:
        assert session.first_time("b", key="k", seq=2)
        session.rollback()
    with factory.begin() as session:
        assert session.first_time("b", key="k", seq=2)


def _ask(session: TaskSession, ordered: bool, number: int) -> bool:
    more: dict[str, Any] = {"key": "k", "seq": number} if ordered else {}
    return session.first_time(f"m{number}", **more)


@pytest.mark.parametrize("known", [True, False], ids=["known-key", "new-key"])
@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "plain"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_second_consumer_waits_for_the_first_and_is_told(
    factory: Factory, balance: Callable[[], int], ordered: bool, end: str, known: bool
) -> None:
    """On SQLite there is one writer at a time: the second does not even begin."""
    number = 2 if known else 1
    if known:
        with factory.begin() as session:
            _ask(session, ordered, 1)
    first = factory()
    assert _ask(first, ordered, number)
    asking, answers = threading.Event(), []

    def second() -> None:
        with factory.begin() as session:
            session.add(Account(id=2))
            session.flush()
            asking.set()
            answers.append(_ask(session, ordered, number))

    thread = threading.Thread(target=second)
    thread.start()
    assert asking.wait(60)
    assert answers == []
    getattr(first, end)()
    first.close()
    thread.join(60)
    assert answers == [end == "rollback"]
    with factory() as session:
        assert session.get(Account, 2) is not None


def test_many_consumers_of_the_same_messages_apply_each_once(factory: Factory, balance: Callable[[], int]) -> None:
    """Without an order; a deadlock (MySQL, when three meet and one rolls back) would be repeated by the broker."""
    with factory.begin() as session:
        session.add(Account(id=1, balance=0))
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def consume() -> None:
        try:
            for number in range(40):
                if number % 10 == 0:
                    barrier.wait(60)
                with factory.begin() as session:
                    if session.first_time(f"m{number}"):
                        session.execute(update(Account).values(balance=Account.balance + 1))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert errors == []
    assert balance() == 40


@pytest.mark.parametrize("ordered", [True, False])
def test_rows_are_pruned_by_age_and_a_key_is_kept(
    factory: Factory, engine: Engine, seen: Callable[[], list[Any]], ordered: bool
) -> None:
    with factory.begin() as session:
        for number in range(5):
            assert _ask(session, False, number)
        session.first_time("k1", key="k", seq=1)
    old = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    with engine.begin() as connection:
        connection.execute(update(INBOX).where(INBOX.c.message_id != "m3").values(seen_at=old))
    if ordered:
        with factory.begin() as session:
            assert session.first_time("k2", key="k", seq=2)
    with engine.begin() as connection:
        assert prune_inbox(connection, INBOX, dt.timedelta(days=14), 3) == 3
        assert prune_inbox(connection, INBOX, dt.timedelta(days=14), 3) == 1
    assert seen() == [("k2", 2) if ordered else ("k1", 1), ("m3", None)]


async def test_an_operators_prune_and_check_know_the_tables(
    engine: Engine, factory: Factory, seen: Callable[[], list[Any]]
) -> None:
    with factory.begin() as session:
        session.first_time("m")
    with engine.begin() as connection:
        connection.execute(update(INBOX).values(seen_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)))
    async with Control(queue, engine) as control:
        assert (await control.check()).table == "ob_task"
        assert await control.prune() == 1
    assert seen() == []


@pytest.mark.servers("sqlite")
def test_what_is_asked_wrongly_is_named(factory: Factory, engine: Engine) -> None:
    with factory.begin() as session:
        for wrong, match in (
            ({"message_id": ""}, "id .*0 characters"),
            ({"message_id": "x" * 1025}, "1 to 1024"),
            ({"message_id": "a\0"}, "NUL"),
            ({"message_id": 7}, "type int"),
            ({"message_id": "m", "source": "x" * 256}, "source"),
            ({"message_id": "m", "key": ""}, "key"),
            ({"message_id": "m", "seq": 1}, "needs the key"),
            ({"message_id": "m", "key": "k", "seq": -1}, "whole number"),
            ({"message_id": "m", "key": "k", "seq": True}, "whole number"),
            ({"message_id": "m", "key": "k", "seq": 2**63}, "whole number"),
        ):
            with pytest.raises(InvalidMessage, match=match):
                session.first_time(**cast("Any", wrong))
        with pytest.raises(InvalidSetting, match="refuse, accept"):
            session.first_time("m", gaps=cast("Any", "hold"))
        with pytest.raises(MissingTable, match="InboxMixin"):
            first_time(session, bare, "m")
        with pytest.raises(InvalidSetting, match="a TaskQueue"):
            first_time(session, cast("Any", "queue"), "m")
    with pytest.raises(InvalidSetting, match="inbox_retention"):
        TaskQueue(Task, inbox_retention=dt.timedelta(0))
    installed: Any = install(sessionmaker(engine), queue=queue)
    with installed.begin() as session:
        assert session.first_time("m")


@pytest.mark.servers("sqlite")
def test_after_the_commit_it_is_too_late(factory: Factory) -> None:
    from sqlalchemy import event

    with factory() as session:
        event.listen(session, "after_commit", lambda session: session.first_time("m"))
        session.add(Account(id=1))
        with pytest.raises(TransactionEnded):
            session.commit()
