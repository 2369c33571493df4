"""`once`: handlers of real consumers, given messages twice, in the wrong order, and failing."""

from __future__ import annotations

import contextlib
import inspect
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session, sessionmaker

from sa_taskqueue import once, prepare_sqlite, sqlite_engine
from sa_taskqueue.events import STRUCTURED, Received, binary, structured
from sa_taskqueue.exceptions import InvalidHandler, InvalidMessage, InvalidSetting, MessageGap, MissingTable
from sa_taskqueue.session import consuming
from tests.outbox.models import Account, Base, bare, queue
from tests.servers.base import Unavailable
from tests.servers.brokers import BROKERS


@dataclass(frozen=True)
class Message:
    seq: int | None = None
    key: str | None = "1"
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    topic: str = "deposits"
    type: str | None = None
    epoch: int = 1
    payload: bytes = b"1"
    headers: dict[str, str] = field(default_factory=dict)
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    source: str = "/bank"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "inbox.db")


@pytest.fixture
def file_engine(file: str) -> Iterator[Engine]:
    engine = sqlite_engine(f"sqlite:///{file}")
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add(Account(id=1, balance=0))
    yield engine
    engine.dispose()


@pytest.fixture
def sessions(file_engine: Engine) -> sessionmaker[Session]:
    return sessionmaker(file_engine)


@pytest.fixture
async def async_sessions(file_engine: Engine, file: str) -> AsyncIterator[Any]:
    from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    prepare_sqlite(engine)
    yield async_sessionmaker(engine)
    await engine.dispose()


def balance(sessions: sessionmaker[Session]) -> int:
    with sessions() as session:
        return session.scalars(select(Account.balance)).one()


@pytest.fixture(scope="module")
def broker_url(pytestconfig: pytest.Config) -> Iterator[Callable[[str], str]]:
    """Where a broker of that name is; one that had to be started is stopped at the end."""

    def find(name: str) -> str:
        try:
            return BROKERS[name].find()
        except Unavailable as absent:
            (pytest.fail if pytestconfig.getoption("--require-all-servers") else pytest.skip)(str(absent))
            raise

    yield find
    for broker in BROKERS.values():
        broker.stop()


def received(message: Message) -> Any:
    """As a client hands it over."""
    return SimpleNamespace(headers=binary(message), body=message.payload)


ADD_ONE = update(Account).values(balance=Account.balance + 1)


def test_a_handler_runs_once_and_again_only_if_it_failed(sessions: sessionmaker[Session]) -> None:
    failing = True

    @once(queue, sessions)
    def deposit(message: Any, session: Session, *, more: int = 0) -> str:
        session.execute(ADD_ONE)
        if failing:
            raise RuntimeError("no")
        return f"done {more}"

    message = received(Message())
    with pytest.raises(RuntimeError):
        deposit(message)
    assert balance(sessions) == 0
    failing = False
    assert deposit(message, more=1) == "done 1"
    assert deposit(message) is None
    assert deposit(message=received(Message())) == "done 0"
    assert balance(sessions) == 2


async def test_an_async_handler(async_sessions: Any, sessions: sessionmaker[Session]) -> None:
    @once(queue, async_sessions)
    async def deposit(message: Any, session: Any) -> str:
        await session.execute(ADD_ONE)
        return "done"

    message = received(Message())
    assert await deposit(message) == "done"
    assert await deposit(message) is None
    with pytest.raises(MessageGap):
        await deposit(received(Message(seq=1))) and await deposit(received(Message(seq=3)))
    assert balance(sessions) == 2


def test_order_gaps_and_sources(sessions: sessionmaker[Session]) -> None:
    @once(queue, sessions)
    def strict(message: Any, session: Session) -> bool:
        return True

    @once(queue, sessions, gaps="accept", source="/partial")
    def partial(message: Any, session: Session) -> bool:
        return True

    first, second, fourth = (received(Message(seq=seq)) for seq in (1, 2, 4))
    assert [strict(each) for each in (first, second, first)] == [True, True, None]
    with pytest.raises(MessageGap):
        strict(fourth)
    assert [partial(each) for each in (first, fourth, second)] == [True, True, None]


def test_other_messages_are_read_by_a_function_of_ones_own(sessions: sessionmaker[Session]) -> None:
    @once(queue, sessions, identify=lambda row: Received(id=row["uid"], source="/own", type="t"))
    def handle(message: Any, session: Session) -> bool:
        return True

    assert [handle({"uid": "a"}), handle({"uid": "a"}), handle({"uid": "b"})] == [True, None, True]
    with pytest.raises(InvalidMessage, match=r"identify="):
        handle({})


def test_what_cannot_work_is_named(sessions: sessionmaker[Session]) -> None:
    with pytest.raises(InvalidHandler, match='no parameter "session"'):
        once(queue, sessions)(lambda message: None)
    with pytest.raises(InvalidHandler, match="after that of the message"):
        once(queue, sessions)(lambda session, message: None)
    with pytest.raises(MissingTable, match="InboxMixin"):
        once(bare, sessions)
    with pytest.raises(InvalidSetting, match="refuse, accept"):
        once(queue, sessions, gaps="hold")  # type: ignore[arg-type]
    handle = once(queue, sessions)(lambda message, session: None)
    for wrong in (object(), SimpleNamespace(headers={}, body=b"{}"), SimpleNamespace(headers=None, value=b"")):
        with pytest.raises(InvalidMessage, match="cannot be read"):
            handle(wrong)


def test_the_signature_is_the_handlers_without_the_session(sessions: sessionmaker[Session]) -> None:
    """FastStream asks a handler what to give it."""

    @once(queue, sessions)
    def handle(message: dict[str, str], session: Session, more: int = 1) -> None:
        """Help."""

    assert list(inspect.signature(handle).parameters) == ["message", "more"]
    assert set(handle.__annotations__) == {"message", "more", "return"}
    assert (handle.__name__, handle.__doc__) == ("handle", "Help.")


@pytest.mark.parametrize("key", ["köln 100%25", "a b"])
def test_a_key_is_read_as_it_was_published_from_every_client(key: str) -> None:
    message = Message(seq=1, key=key)
    body = message.payload
    clients = [
        SimpleNamespace(headers=binary(message), body=body),
        SimpleNamespace(
            headers=lambda: [(n, v.encode()) for n, v in binary(message, prefix="ce_").items()], value=body
        ),
        SimpleNamespace(headers=binary(message, ascii_only=True), data=body),
        SimpleNamespace(headers=None, content_type=STRUCTURED, body=structured(message)),
        SimpleNamespace(headers={"content-type": STRUCTURED}, data=structured(message)),
    ]
    assert [consuming.received(each).key for each in clients] == [key] * len(clients)


async def test_a_consumer_of_rabbitmq(
    broker_url: Callable[[str], str], async_sessions: Any, sessions: sessionmaker[Session]
) -> None:
    """Duplicates are dropped, a message that comes too early is put back until those before it were applied."""
    aio_pika = pytest.importorskip("aio_pika")
    applied: list[int | None] = []

    @once(queue, async_sessions)
    async def deposit(message: Any, session: Any) -> None:
        await session.execute(ADD_ONE)
        applied.append(int(message.headers["ce-sequence"]))

    messages = [Message(seq=seq) for seq in range(1, 6)]
    sent = [messages[number] for number in (0, 0, 2, 1, 1, 4, 3, 0)]
    async with await aio_pika.connect(broker_url("rabbitmq")) as connection:
        channel = await connection.channel()
        inbox = await channel.declare_queue(f"once-{uuid.uuid4()}", exclusive=True)
        for number, each in enumerate(sent):
            if number % 2:
                made = aio_pika.Message(structured(each), content_type=STRUCTURED, headers=dict(binary(each)))
            else:
                made = aio_pika.Message(each.payload, headers=dict(binary(each)))
            await channel.default_exchange.publish(made, inbox.name)
        settled = 0
        async with inbox.iterator() as incoming:
            async for message in incoming:
                with contextlib.suppress(MessageGap):
                    async with message.process(requeue=True):
                        await deposit(message)
                        settled += 1
                if settled == len(sent):
                    break
    assert applied == [1, 2, 3, 4, 5]
    assert balance(sessions) == 5


def test_a_consumer_of_kafka(broker_url: Callable[[str], str], sessions: sessionmaker[Session]) -> None:
    """A handler that fails is not acknowledged: the consumer reads it again."""
    kafka = pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient, NewTopic

    server = broker_url("kafka").removeprefix("kafka://")
    topic, fails = f"once-{uuid.uuid4()}", iter([True])

    @once(queue, sessions)
    def deposit(message: Any, session: Session) -> None:
        session.execute(ADD_ONE)
        if next(fails, False):
            raise ConnectionError("the first try")

    admin = AdminClient({"bootstrap.servers": server})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    producer = kafka.Producer({"bootstrap.servers": server})
    messages = [Message(seq=seq) for seq in range(1, 6)]
    for each in (*messages, *messages[2:4]):
        headers = list(binary(each, prefix="ce_").items())
        producer.produce(topic, each.payload, key=each.key, headers=headers)
    assert producer.flush(60) == 0
    consumer = kafka.Consumer(
        {"bootstrap.servers": server, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    try:
        consumer.assign([kafka.TopicPartition(topic, 0, 0)])
        handled = 0
        while handled < 7:
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None
            try:
                deposit(message)
            except ConnectionError:
                consumer.seek(kafka.TopicPartition(topic, 0, message.offset()))
                continue
            handled += 1
    finally:
        consumer.close()
    assert balance(sessions) == 5
