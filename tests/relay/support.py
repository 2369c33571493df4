"""Runs relays in tests and reads what they have committed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, Row, func, select
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import KeyStatus, MessageStatus, TaskSession
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.publishers.base import Message
from sa_taskqueue.relay import Relay
from tests.outbox.models import Outbox as OutboxModel
from tests.outbox.models import OutboxKey
from tests.support import TIMEOUT

MESSAGES, KEYS = OutboxModel.__table__, OutboxKey.__table__


@dataclass
class Outbox:
    """Puts messages in and reads rows out, each in a transaction of its own."""

    engine: Engine
    factory: sessionmaker[TaskSession]

    def put(self, topic: str, payload: object = None, **options: Any) -> UUID:
        with self.factory.begin() as session:
            return session.publish(topic, payload, **options).id  # type: ignore[no-any-return]

    def put_many(self, topic: str, number: int, **options: Any) -> list[UUID]:
        with self.factory.begin() as session:
            fields = [{"topic": topic, "payload": n, **options} for n in range(number)]
            return session.publish_many(fields)

    def row(self, message: UUID) -> Row[Any]:
        with self.engine.connect() as connection:
            return connection.execute(select(MESSAGES).where(MESSAGES.c.id == message)).one()

    def key(self, key: str) -> Row[Any]:
        with self.engine.connect() as connection:
            return connection.execute(select(KEYS).where(KEYS.c.id == key_hash(key))).one()

    def statuses(self) -> dict[MessageStatus, int]:
        statement = select(MESSAGES.c.status, func.count()).group_by(MESSAGES.c.status)
        with self.engine.connect() as connection:
            return {MessageStatus(status): count for status, count in connection.execute(statement)}

    def key_statuses(self) -> dict[KeyStatus, int]:
        statement = select(KEYS.c.status, func.count()).group_by(KEYS.c.status)
        with self.engine.connect() as connection:
            return {KeyStatus(status): count for status, count in connection.execute(statement)}


class Received:
    """What arrived, by key in the order of arrival; thread-safe, because relays run in threads."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._lock = threading.Lock()

    def __call__(self, message: Message) -> None:
        self.take([message])

    def take(self, messages: Sequence[Message]) -> None:
        with self._lock:
            self.messages.extend(messages)

    @property
    def ids(self) -> list[UUID]:
        return [each.id for each in self.messages]

    def numbers(self) -> dict[str, list[int]]:
        """The numbers of each key as they arrived."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for message in self.messages:
            if message.key is not None and message.seq is not None:
                found[message.key].append(message.seq)
        return dict(found)


def violations(numbers: Sequence[int]) -> list[int]:
    """Places at which a consumer that drops what it knows would see a gap: repeats are allowed, gaps are not."""
    last, found = 0, []
    for at, number in enumerate(numbers):
        if number > last + 1:
            found.append(at)
        last = max(last, number)
    return found


@contextlib.contextmanager
def running(*relays: Relay) -> Iterator[None]:
    """The relays serve on one loop in a thread; at the end they are waited for, after an exception they are stopped."""
    failed: list[BaseException] = []

    async def serve() -> None:
        await asyncio.gather(*(relay.serve() for relay in relays))

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # handed to the test below
            failed.append(error)

    thread = threading.Thread(target=work, name="relays under test")
    thread.start()
    try:
        yield
    except BaseException:
        _stop(relays, thread)
        raise
    thread.join(TIMEOUT)
    if thread.is_alive():
        _stop(relays, thread)
        raise AssertionError(f"a relay did not end: {[relay.counts for relay in relays]}")
    if failed:
        raise failed[0]


def drain(*relays: Relay) -> Relay:
    """Run draining relays to their end, side by side."""
    with running(*relays):
        pass
    return relays[0]


def _stop(relays: Sequence[Relay], thread: threading.Thread) -> None:
    for relay in relays:
        relay.stop()
        relay.stop()
    thread.join(TIMEOUT)
