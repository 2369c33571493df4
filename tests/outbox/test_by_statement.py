"""`publish_from`: messages of the rows that a statement changes, with the change, and in the order of the commits."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, Integer, String, cast, delete, event, func, insert, select, update
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.exceptions import InvalidMessage, InvalidSetting, MissingTable
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.session import TaskSession, publish_from
from tests.outbox.models import Account, CapturedOutbox, Outbox, OutboxKey, bare, captured, queue

Factory = sessionmaker[TaskSession]
Stored = Callable[..., list[Any]]

RAISE = update(Account).where(Account.id < 4).values(balance=Account.balance + 10)


@pytest.fixture
def accounts(factory: Factory) -> None:
    """Numbers 1 to 4, each with as much as its number."""
    with factory.begin() as session:
        session.add_all([Account(id=number, balance=number) for number in range(1, 5)])


@pytest.mark.every_driver
def test_a_message_for_each_row_with_the_change(
    factory: Factory, accounts: None, stored: Stored, woken: list[str]
) -> None:
    payload = {"account": Account.id, "balance": Account.balance, "why": "interest"}
    with factory() as session:
        session.publish_from(RAISE, "accounts.raised", payload)
        session.rollback()
        assert session.publish_from(RAISE, "accounts.raised", payload, type="raised", headers={"a": "b"}) == 3
        assert stored() == []
        session.commit()
    found = sorted((json.loads(payload) for payload in stored("payload")), key=lambda each: each["account"])
    assert found == [{"account": number, "balance": number + 10, "why": "interest"} for number in (1, 2, 3)]
    assert set(stored("topic", "type", "status", "key", "seq", "reserved_by")) == {
        ("accounts.raised", "raised", "NEW", None, None, None)
    }
    assert {json.loads(each)["a"] for each in stored("headers")} == {"b"}
    assert {each.version for each in stored()} == {7}
    assert woken == ["ob_outbox"]


@pytest.mark.every_driver
async def test_on_an_async_session_it_is_awaited_and_keys_are_numbered(
    async_factory: Any, accounts: None, stored: Stored
) -> None:
    async with async_factory() as session:
        rows = await session.publish_from(RAISE.returning(Account.id), "raised", {"id": Account.id}, key=Account.id)
        await session.commit()
    assert sorted(row.id for row in rows) == [1, 2, 3]
    assert sorted(stored("key", "key_hash", "seq", "status", "reserved_by")) == [
        (str(number), key_hash(str(number)), 1, "QUEUED", None) for number in (1, 2, 3)
    ]


def test_messages_of_a_key_have_their_place_among_those_of_other_commits(
    factory: Factory, accounts: None, stored: Stored
) -> None:
    """Numbered by the relay they could come after a message that was committed later."""
    with factory.begin() as session:
        session.publish("t", 1, key="all")
        session.publish_from(RAISE, "t", {"id": Account.id}, key="all")
    with factory.begin() as session:
        session.publish("t", 2, key="all")
        with session.begin_nested() as savepoint:
            session.publish_from(RAISE, "t", {"id": Account.id}, key="all")
            savepoint.rollback()
    numbers = dict(stored("payload", "seq"))
    assert sorted(numbers.values()) == [1, 2, 3, 4, 5]
    assert (numbers["1"], numbers["2"]) == (1, 5)
    assert set(stored("status")) == {"QUEUED"}


def test_a_key_of_text_numbers_and_uuids_has_the_hash_that_python_makes(
    factory: Factory, accounts: None, stored: Stored
) -> None:
    texts = ["plain", "ü 😀 '\" \\ %", "UPPER"]
    with factory.begin() as session:
        for text in texts:
            one = select(Account).where(Account.id == 1)
            session.publish_from(one, "t", 1, key=cast(func.coalesce(text, text), String(40)), ordered=True)
        session.publish_from(
            select(Account).where(Account.id == 1), "t", 1, key=func.nullif(Account.balance, 1, type_=Integer)
        )
    assert {(key, hash_) for key, hash_ in stored("key", "key_hash") if key} == {
        (each, key_hash(each)) for each in texts
    }
    assert stored("key").count(None) == 1
    with factory.begin() as session:
        made = session.scalars(select(Outbox.id)).all()
        session.publish_from(select(Outbox), "again", None, key=Outbox.id, ordered=False)
    assert set(map(str, made)) <= set(stored("key"))
    assert {hash_ for topic, hash_ in stored("topic", "key_hash") if topic == "again"} == {None}


def test_deletes_selects_and_messages_for_later(factory: Factory, accounts: None, stored: Stored) -> None:
    import datetime as dt

    with factory.begin() as session:
        later = {"run_after": dt.timedelta(hours=1), "key": "k"}
        assert session.publish_from(select(Account), "seen", {"id": Account.id}, **later) == 4
        gone = delete(Account).where(Account.id == 4).returning(Account.id)
        assert session.publish_from(gone, "gone", {"id": Account.id}) == [(4,)]
    assert sorted(stored("topic", "status")) == [("gone", "NEW"), *[("seen", "SCHEDULED")] * 4]


def test_debeziums_outbox(engine: Engine, factory: Factory, accounts: None) -> None:
    with TaskSession(engine) as session:
        publish_from(session, captured, RAISE, "account", {"id": Account.id}, key=Account.id, type="Raised")
        session.commit()
        found = session.scalars(select(CapturedOutbox).order_by(CapturedOutbox.aggregateid)).all()
    assert [(row.aggregatetype, row.aggregateid, row.type) for row in found] == [
        ("account", str(number), "Raised") for number in (1, 2, 3)
    ]
    assert len({row.id for row in found}) == 3
    assert {row.id.version for row in found} == {7}
    assert all(isinstance(row.id, uuid.UUID) for row in found)


def test_bad_input_is_refused_before_sql(engine: Engine, factory: Factory, accounts: None) -> None:
    sent: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: sent.append(args[2]))
    with factory() as session:
        for options, message in (
            ({"topic": "a b"}, "topic"),
            ({"key": func.now()}, "key of the message"),
            ({"key": func.unknown()}, "key of the message"),
            ({"payload": {"x": func.unknown()}}, "payload of the message"),
        ):
            given: dict[str, Any] = {"topic": "t", "payload": {"id": Account.id}, **options}
            with pytest.raises(InvalidMessage, match=message):
                session.publish_from(RAISE, **given)
        with pytest.raises(InvalidSetting, match="statement is"):
            session.publish_from("UPDATE", "t", 1)  # type: ignore[call-overload]
        with pytest.raises(MissingTable):
            publish_from(session, bare, RAISE, "t", 1)
    assert sent == []


def test_nothing_changed_takes_no_number(factory: Factory, accounts: None, stored: Stored, woken: list[str]) -> None:
    with factory.begin() as session:
        assert session.publish_from(RAISE.where(Account.id > 9), "t", 1, key="k") == 0
        assert session.scalar(select(func.count()).select_from(OutboxKey)) == 0
    assert (stored(), woken) == ([], [])


@pytest.mark.servers("sqlite", "postgresql", "mariadb", "postgresql18")
def test_an_insert(factory: Factory, accounts: None, stored: Stored) -> None:
    with factory.begin() as session:
        copies = insert(Account).from_select(["id", "balance"], select(Account.id + 100, Account.balance))
        assert session.publish_from(copies, "made", {"id": Account.id}, key=Account.id) == 4
    assert sorted(stored("key")) == ["101", "102", "103", "104"]
    assert queue.outbox is Outbox
