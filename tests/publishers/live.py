"""The brokers of the tests as a consumer sees them: a topic of a test's own, and what arrived in it."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tests.support import TIMEOUT


class Arrived(NamedTuple):
    """One message as the broker gave it out."""

    headers: dict[str, str]
    body: bytes
    content_type: str | None = None
    key: str | None = None


class Live:
    """One kind of broker."""

    name: str
    #: Whether header values are percent-encoded.
    encoded = False

    def __init__(self, url: str) -> None:
        self.url = url

    @contextlib.asynccontextmanager
    async def topic(self) -> AsyncIterator[str]:
        """A topic that exists as long as the block."""
        yield f"t{uuid.uuid4().hex}"

    async def read(self, topic: str, count: int) -> list[Arrived]:
        """The first so many messages of the topic, in its order."""
        raise NotImplementedError


class LiveKafka(Live):
    name = "kafka"

    @contextlib.asynccontextmanager
    async def topic(self) -> AsyncIterator[str]:
        from confluent_kafka.admin import AdminClient, NewTopic

        topic = f"t{uuid.uuid4().hex}"
        admin = AdminClient({"bootstrap.servers": urlsplit(self.url).netloc})
        for done in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            await asyncio.to_thread(done.result, TIMEOUT)
        yield topic

    async def read(self, topic: str, count: int) -> list[Arrived]:
        return await asyncio.to_thread(self._read, topic, count)

    def _read(self, topic: str, count: int) -> list[Arrived]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": urlsplit(self.url).netloc, "group.id": topic})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Arrived] = []
        deadline = time.monotonic() + TIMEOUT
        while len(found) < count and time.monotonic() < deadline:
            for each in consumer.consume(count - len(found), 0.5):
                assert each.error() is None, each.error()
                headers = {name: (value or b"").decode() for name, value in each.headers() or []}
                found.append(Arrived(headers, each.value(), headers.get("content-type"), (each.key() or b"").decode()))
        consumer.close()
        return found


class LiveRabbitMQ(Live):
    name = "rabbitmq"

    @contextlib.asynccontextmanager
    async def topic(self) -> AsyncIterator[str]:
        import aio_pika

        topic = f"t{uuid.uuid4().hex}"
        async with await aio_pika.connect(self.url) as connection, connection.channel() as channel:
            queue = await channel.declare_queue(topic, durable=True)
            yield topic
            await queue.delete(if_unused=False, if_empty=False)

    async def read(self, topic: str, count: int) -> list[Arrived]:
        import aio_pika

        found: list[Arrived] = []
        async with await aio_pika.connect(self.url) as connection, connection.channel() as channel:
            queue = await channel.declare_queue(topic, durable=True, passive=True)
            count = min(count, queue.declaration_result.message_count)
            if not count:
                return []
            async with queue.iterator(no_ack=True, timeout=TIMEOUT) as arriving:
                async for each in arriving:
                    assert each.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
                    headers = {name: str(value) for name, value in each.headers.items()}
                    found.append(Arrived(headers, each.body, each.content_type, headers.get("sa-taskqueue-key")))
                    if len(found) == count:
                        break
        return found


class LiveNATS(Live):
    name = "nats"
    encoded = True

    @contextlib.asynccontextmanager
    async def topic(self) -> AsyncIterator[str]:
        import nats

        topic = f"t{uuid.uuid4().hex}"
        client = await nats.connect(self.url)
        await client.jetstream().add_stream(name=topic, subjects=[topic])
        try:
            yield topic
            await client.jetstream().delete_stream(topic)
        finally:
            await client.close()

    async def read(self, topic: str, count: int) -> list[Arrived]:
        import nats
        from nats.js.api import AckPolicy, ConsumerConfig

        client = await nats.connect(self.url)
        try:
            unacknowledged = ConsumerConfig(ack_policy=AckPolicy.NONE)
            consumer = await client.jetstream().pull_subscribe(topic, stream=topic, config=unacknowledged)
            found: list[Arrived] = []
            while len(found) < count:
                for each in await consumer.fetch(min(500, count - len(found)), timeout=TIMEOUT):
                    headers = {**(each.headers or {})}
                    key = headers.get("sa-taskqueue-key")
                    kind = headers.get("Content-Type")
                    found.append(Arrived(headers, each.data, kind, None if key is None else unquote(key)))
            return found
        finally:
            await client.close()


class LiveRedis(Live):
    name = "valkey"

    @contextlib.asynccontextmanager
    async def topic(self) -> AsyncIterator[str]:
        from redis.asyncio import Redis

        topic = f"t{uuid.uuid4().hex}"
        yield topic
        async with Redis.from_url(self.url, socket_timeout=TIMEOUT) as client:
            await client.delete(topic)

    async def read(self, topic: str, count: int) -> list[Arrived]:
        from redis.asyncio import Redis

        async with Redis.from_url(self.url, socket_timeout=TIMEOUT) as client:
            rows: Any = await client.xrange(topic, count=count)
        found = []
        for _, fields in rows:
            body = fields.pop(b"data")
            headers = {name.decode(): value.decode() for name, value in fields.items()}
            found.append(Arrived(headers, body, headers.get("content-type"), headers.get("sa-taskqueue-key")))
        return found


LIVE: dict[str, type[Live]] = {kind.name: kind for kind in (LiveKafka, LiveRabbitMQ, LiveNATS, LiveRedis)}
