"""Consumers of the four brokers, each through the usual client; every one gives what it has not confirmed again."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from sa_taskqueue.events import Received, read

BATCH = 50
PATIENCE = 1.0
"""Seconds that a look for messages may take."""


class Consumer(Protocol):
    """Reads one topic in order. After an error it is closed, and connects again at the next look."""

    errors: ClassVar[tuple[type[Exception], ...]]

    async def prepare(self) -> None:
        """Make the queue, stream or topic before anything is sent."""

    async def fetch(self) -> list[Received]:
        """The next messages, in order; none after a while."""
        ...

    async def confirm(self) -> None:
        """Never bring again what `fetch` gave last."""

    async def close(self) -> None:
        """Disconnect."""

    async def remove(self) -> None:
        """Delete what `prepare` made."""


class RedisConsumer:
    """XREADGROUP: first what was read and not confirmed, then what is new."""

    from redis.exceptions import RedisError

    errors = (RedisError, OSError)
    GROUP = "shop"

    def __init__(self, to: str, topic: str) -> None:
        self._to, self._topic = to, topic
        self._redis: Any = None
        self._from: bytes | str = "0"
        self._ids: list[bytes] = []

    async def prepare(self) -> None:
        from redis.exceptions import ResponseError

        redis = self._connected()
        try:
            await redis.xgroup_create(self._topic, self.GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def fetch(self) -> list[Received]:
        await self.prepare()
        block = int(PATIENCE * 1000) if self._from == ">" else None
        found = await self._redis.xreadgroup(self.GROUP, "one", {self._topic: self._from}, count=BATCH, block=block)
        entries = [entry for _, some in (found or []) for entry in some]
        if not entries:
            self._from = ">"
        self._ids = [entry[0] for entry in entries]
        return [read(fields, fields[b"data"]) for _, fields in entries]

    async def confirm(self) -> None:
        await self._redis.xack(self._topic, self.GROUP, *self._ids)

    async def close(self) -> None:
        redis, self._redis, self._from = self._redis, None, "0"
        if redis is not None:
            await redis.aclose()

    async def remove(self) -> None:
        await self._connected().delete(self._topic)
        await self.close()

    def _connected(self) -> Any:
        from redis.asyncio import Redis

        if self._redis is None:
            self._redis = Redis.from_url(self._to, socket_timeout=10)
        return self._redis


class RabbitConsumer:
    """A durable queue bound to nothing but the default exchange; unconfirmed messages come again on a new channel."""

    from aiormq.exceptions import AMQPError

    errors = (AMQPError, OSError, RuntimeError)

    def __init__(self, to: str, topic: str) -> None:
        self._to, self._topic = to, topic
        self._connection: Any = None
        self._queue: Any = None
        self._last: Any = None

    async def prepare(self) -> None:
        if self._queue is None:
            import aio_pika

            self._connection = await aio_pika.connect(self._to)
            channel = await self._connection.channel()
            self._queue = await channel.declare_queue(self._topic, durable=True)

    async def fetch(self) -> list[Received]:
        await self.prepare()
        messages: list[Any] = []
        while len(messages) < BATCH and (message := await self._queue.get(fail=False)) is not None:
            messages.append(message)
        if not messages:
            await asyncio.sleep(0.1)
            return []
        self._last = messages[-1]
        return [read(each.headers, each.body, content_type=each.content_type) for each in messages]

    async def confirm(self) -> None:
        await self._last.ack(multiple=True)

    async def close(self) -> None:
        connection, self._connection, self._queue = self._connection, None, None
        if connection is not None:
            await connection.close()

    async def remove(self) -> None:
        await self.prepare()
        await self._queue.delete(if_unused=False, if_empty=False)
        await self.close()


class NATSConsumer:
    """A stream for the topic, and a durable pull consumer that waits for each confirmation."""

    from nats.errors import Error

    errors = (Error, OSError)

    def __init__(self, to: str, topic: str) -> None:
        self._to, self._topic = to, topic
        self._client: Any = None
        self._subscription: Any = None
        self._last: list[Any] = []

    async def prepare(self) -> None:
        if self._client is None:
            import nats
            from nats.js.api import AckPolicy, ConsumerConfig

            self._client = await nats.connect(self._to, max_reconnect_attempts=0, allow_reconnect=False)
            stream = self._client.jetstream()
            await stream.add_stream(name=self._topic, subjects=[self._topic])
            config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=BATCH, ack_wait=5)
            self._subscription = await stream.pull_subscribe(self._topic, "shop", stream=self._topic, config=config)

    async def fetch(self) -> list[Received]:
        import nats.errors

        await self.prepare()
        try:
            self._last = await self._subscription.fetch(BATCH, timeout=PATIENCE)
        except nats.errors.TimeoutError:
            return []
        return [read(each.headers, each.data, percent_encoded=True) for each in self._last]

    async def confirm(self) -> None:
        for each in self._last:
            await each.ack_sync(timeout=5)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def remove(self) -> None:
        await self.prepare()
        await self._client.jetstream().delete_stream(self._topic)
        await self.close()


class KafkaConsumer:
    """One partition, read from where it was confirmed; the group's offsets live in the broker."""

    from confluent_kafka import KafkaException

    errors = (KafkaException, OSError)

    def __init__(self, to: str, topic: str) -> None:
        self._servers, self._topic = urlsplit(to).netloc, topic
        self._consumer: Any = None
        self._next = 0

    async def prepare(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self._servers})
        made = admin.create_topics([NewTopic(self._topic, 1, 1)])
        await asyncio.to_thread(made[self._topic].result, 30)

    async def fetch(self) -> list[Received]:
        found = await asyncio.to_thread(self._look)
        messages = [each for each in found if each.error() is None]
        if messages:
            self._until = messages[-1].offset() + 1
        return [read(dict(each.headers() or ()), each.value()) for each in messages]

    async def confirm(self) -> None:
        self._next = self._until

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    async def remove(self) -> None:
        await self.close()

    def _look(self) -> list[Any]:
        from confluent_kafka import Consumer, TopicPartition

        if self._consumer is None:
            self._consumer = Consumer(
                {"bootstrap.servers": self._servers, "group.id": "shop", "enable.auto.commit": False}
            )
            self._consumer.assign([TopicPartition(self._topic, 0, self._next)])
        found: list[Any] = self._consumer.consume(BATCH, timeout=PATIENCE)
        return found


CONSUMERS: dict[str, type[Consumer]] = {
    "redis": RedisConsumer,
    "valkey": RedisConsumer,
    "amqp": RabbitConsumer,
    "nats": NATSConsumer,
    "kafka": KafkaConsumer,
}


def consumer_of(to: str, topic: str) -> Consumer:
    return CONSUMERS[urlsplit(to).scheme](to, topic)  # type: ignore[call-arg]
