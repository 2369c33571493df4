"""One process of the benchmark ``relay``: ``python -m benchmarks.relaying '{"kind": ...}'``; prints what it took."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benchmarks.plain.base import body

HEADERS = {
    "ce-specversion": "1.0",
    "ce-id": "019acb6e-7a35-7c41-9d5c-3f1f2f9b6a01",
    "ce-source": "/benchmarks",
    "ce-type": "bench-0123456789ab",
    "ce-time": "2026-12-01T00:00:00.000000Z",
    "ce-epoch": "1",
    "sa-taskqueue-id": "019acb6e-7a35-7c41-9d5c-3f1f2f9b6a01",
    "sa-taskqueue-epoch": "1",
    "content-type": "application/json",
}
"""What the client alone sends beside the payload: as much as the relay, whose messages say what they are."""


@dataclass(frozen=True)
class Job:
    """``unkeyed`` and ``keyed``: the library's relay. ``broker``: its client alone. ``peer``: faststream-outbox."""

    kind: str
    url: str
    to: str
    batch: int
    messages: int
    topic: str


def relayed(job: Job) -> tuple[int, float]:
    """The library's relay, from its start to the end of a drain."""
    from benchmarks.relay import relay_queue
    from benchmarks.tables import make_engine
    from sa_taskqueue import Relay

    relay = Relay(relay_queue(), make_engine(job.url), to=job.to, batch=job.batch, drain=True)
    started = time.monotonic()
    relay.run()
    return relay.counts.sent, time.monotonic() - started


def sent(job: Job) -> tuple[int, float]:
    """The broker's client alone, the next batch after the last was confirmed."""
    return asyncio.run(_sent(job))


async def _sent(job: Job) -> tuple[int, float]:
    send, close = await CLIENTS[urlsplit(job.to).scheme](job)
    payloads = [body(number).encode() for number in range(job.messages)]
    started = time.monotonic()
    for start in range(0, job.messages, job.batch):
        await send(payloads[start : start + job.batch])
    seconds = time.monotonic() - started
    await close()
    return job.messages, seconds


Client = tuple[Callable[[list[bytes]], Awaitable[Any]], Callable[[], Awaitable[Any]]]


async def _redis(job: Job) -> Client:
    from redis.asyncio import Redis

    redis = Redis.from_url(job.to, single_connection_client=True)

    async def send(payloads: list[bytes]) -> None:
        async with redis.pipeline(transaction=True) as pipeline:
            for payload in payloads:
                pipeline.xadd(job.topic, {**HEADERS, "data": payload})
            await pipeline.execute()

    async def close() -> None:
        await redis.delete(job.topic)
        await redis.aclose()

    return send, close


async def _rabbitmq(job: Job) -> Client:
    import aio_pika

    connection = await aio_pika.connect(job.to)
    channel = await connection.channel(publisher_confirms=True)
    await channel.declare_queue(job.topic, durable=True)

    def message(payload: bytes) -> aio_pika.Message:
        return aio_pika.Message(payload, headers=dict(HEADERS), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)

    async def send(payloads: list[bytes]) -> None:
        await asyncio.gather(*(channel.default_exchange.publish(message(each), job.topic) for each in payloads))

    async def close() -> None:
        await channel.queue_delete(job.topic)
        await connection.close()

    return send, close


async def _nats(job: Job) -> Client:
    import nats

    client = await nats.connect(job.to)
    stream = client.jetstream()
    await stream.add_stream(name=job.topic, subjects=[job.topic])

    async def send(payloads: list[bytes]) -> None:
        await asyncio.gather(*(stream.publish(job.topic, each, headers=HEADERS) for each in payloads))

    async def close() -> None:
        await stream.delete_stream(job.topic)
        await client.close()

    return send, close


async def _kafka(job: Job) -> Client:
    from confluent_kafka import Producer

    parts = urlsplit(job.to)
    producer = Producer({"bootstrap.servers": parts.netloc, "acks": "all", "enable.idempotence": True, "linger.ms": 0})

    async def send(payloads: list[bytes]) -> None:
        for each in payloads:
            producer.produce(job.topic, each, headers=HEADERS)
        producer.flush()

    async def close() -> None:
        producer.flush()

    return send, close


CLIENTS: dict[str, Callable[[Job], Awaitable[Client]]] = {
    "redis": _redis,
    "amqp": _rabbitmq,
    "nats": _nats,
    "kafka": _kafka,
}


def peer(job: Job) -> tuple[int, float]:
    """faststream-outbox with its batches as large, from its start until its table is empty."""
    return asyncio.run(_peer(job))


async def _peer(job: Job) -> tuple[int, float]:
    from faststream_outbox import OutboxBroker, make_outbox_table
    from sqlalchemy import MetaData, func, make_url, select
    from sqlalchemy.ext.asyncio import create_async_engine

    metadata = MetaData()
    table = make_outbox_table(metadata, table_name="bench_peer_outbox")
    engine = create_async_engine(make_url(job.url).set(drivername="postgresql+asyncpg"), pool_size=30)
    outbox = OutboxBroker(engine, outbox_table=table)
    broker, publisher = _peer_broker(job)

    @publisher  # type: ignore[untyped-decorator]
    @outbox.subscriber(
        job.topic,
        max_workers=20,
        fetch_batch_size=job.batch,
        terminal_flush_batch_size=job.batch,
        min_fetch_interval=0.01,
        max_fetch_interval=0.1,
    )
    async def relay(message: dict[str, Any]) -> dict[str, Any]:
        return message

    async with engine.begin() as connection:
        await connection.run_sync(metadata.drop_all)
        await connection.run_sync(metadata.create_all)
        for start in range(0, job.messages, 5_000):
            numbers = range(start, min(start + 5_000, job.messages))
            bodies = [json.loads(body(number)) for number in numbers]
            await outbox.publish_batch(*bodies, queue=job.topic, session=connection)
    await broker.connect()
    started = time.monotonic()
    await outbox.start()
    deadline = dt.timedelta(minutes=5).total_seconds()
    left = job.messages
    while left and time.monotonic() - started < deadline:
        await asyncio.sleep(0.02)
        async with engine.connect() as connection:
            left = (await connection.execute(select(func.count()).select_from(table))).scalar_one()
    seconds = time.monotonic() - started
    await outbox.stop()
    await broker.stop()
    async with engine.begin() as connection:
        await connection.run_sync(metadata.drop_all)
    await engine.dispose()
    return job.messages - left, seconds


def _peer_broker(job: Job) -> tuple[Any, Any]:
    scheme = urlsplit(job.to).scheme
    if scheme == "redis":
        from faststream.redis import RedisBroker

        redis = RedisBroker(job.to)
        return redis, redis.publisher(stream=job.topic)
    if scheme == "nats":
        from faststream.nats import NatsBroker

        nats = NatsBroker(job.to)
        return nats, nats.publisher(job.topic)
    if scheme == "amqp":
        from faststream.rabbit import RabbitBroker

        rabbit = RabbitBroker(job.to)
        return rabbit, rabbit.publisher(job.topic)
    from faststream.confluent import KafkaBroker

    kafka = KafkaBroker(urlsplit(job.to).netloc)
    return kafka, kafka.publisher(job.topic)


KINDS = {"unkeyed": relayed, "keyed": relayed, "broker": sent, "peer": peer}


if __name__ == "__main__":
    chosen = Job(**json.loads(sys.argv[1]))
    done, seconds = KINDS[chosen.kind](chosen)
    print(json.dumps({"done": done, "seconds": seconds}))
