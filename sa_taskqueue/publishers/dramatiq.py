"""Dramatiq's own queues, by Dramatiq's own brokers: the message is one that a Dramatiq worker runs."""

from __future__ import annotations

from typing import Any

import dramatiq

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.base import Message
from sa_taskqueue.publishers.threaded import ThreadedPublisher, arguments


class DramatiqPublisher(ThreadedPublisher):
    """The topic is the actor's name, the payload its arguments, the message's id the id of Dramatiq's message.

    ``dramatiq+amqp://...``, ``dramatiq+redis://...``. Options: ``queue`` (default ``default``), ``timeout``;
    ``client``, for Dramatiq's broker.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._queue = given.text("queue", "default")
        self._settings = given.mapping("client")
        self._transport = self.address.scheme.partition("+")[2] or "amqp"
        if self._transport not in ("amqp", "amqps", "redis", "rediss"):
            allowed = "dramatiq+amqp, dramatiq+amqps, dramatiq+redis or dramatiq+rediss"
            raise InvalidSetting(setting="the URL's scheme", value=self.address.scheme, allowed=allowed)
        given.finish("queue, timeout, client")
        self._broker: dramatiq.Broker | None = None

    def start(self, seconds: float) -> None:
        url = self.address.plain(self._transport)
        self._broker = self._rabbitmq(url) if self._transport.startswith("amqp") else self._redis(url, seconds)
        self._broker.declare_queue(self._queue)

    def send_one(self, message: Message) -> None:
        positional, named = arguments(message)
        if self._broker is None:
            raise ConnectionError("the connection was lost")
        self._broker.enqueue(
            dramatiq.Message(
                queue_name=self._queue,
                actor_name=message.topic,
                args=tuple(positional),
                kwargs=named,
                options={"headers": dict(message.headers)} if message.headers else {},
                message_id=str(message.id),
                message_timestamp=int(message.time.timestamp() * 1000),
            )
        )

    def stop(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.close()

    def _rabbitmq(self, url: str) -> dramatiq.Broker:
        from dramatiq.brokers.rabbitmq import RabbitmqBroker

        # Without middleware: it is the workers', and would log and retry here as well.
        broker = RabbitmqBroker(url=url, confirm_delivery=True, middleware=[], **self._settings)
        broker.connection  # noqa: B018 - made at the first use
        return broker

    def _redis(self, url: str, seconds: float) -> dramatiq.Broker:
        from dramatiq.brokers.redis import RedisBroker

        limits = {"socket_timeout": self.timeout, "socket_connect_timeout": seconds}
        broker: Any = RedisBroker(url=url, middleware=[], **{**limits, **self._settings})  # type: ignore[no-untyped-call]
        broker.client.ping()
        found: dramatiq.Broker = broker
        return found
