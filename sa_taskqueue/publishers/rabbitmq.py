"""RabbitMQ, by aio-pika: publisher confirms, and what nobody would receive comes back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import AMQPError, ChannelInvalidStateError, DeliveryError, PublishError

from sa_taskqueue.publishers.base import SENT, Failed, Message, Outcome, Refused
from sa_taskqueue.publishers.connected import ConnectedPublisher
from sa_taskqueue.publishers.deadline import Deadline, each
from sa_taskqueue.publishers.envelope import Packing
from sa_taskqueue.publishers.tls import tls_context

_NO_EXCHANGE = re.compile(r"no exchange '([^']*)'")
_TOO_LARGE = re.compile(r"message size (\d+) is larger")
_LONGEST_KEY = 255


class RabbitMQPublisher(ConnectedPublisher):
    """Persistent messages, mandatory: one that no queue receives is refused.

    Options: ``exchange`` (default: the default exchange, whose routing key is a queue's name) and ``routing_key``
    (default ``{topic}``), in which ``{topic}``, ``{type}`` and ``{key}`` are filled in; ``mandatory=false`` lets go
    what nobody receives; ``cloudevents``, ``timeout``, ``cafile``, ``certfile``, ``keyfile``; ``client`` for aio-pika.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._packing = Packing.of(given)
        self._exchange = given.text("exchange", "")
        self._routing_key = given.text("routing_key", "{topic}")
        self._mandatory = given.yes("mandatory", default=True)
        self._tls = tls_context(given) if self.address.scheme == "amqps" else None
        self._client_options = given.mapping("client")
        given.finish("exchange, routing_key, mandatory, cloudevents, timeout, cafile, certfile, keyfile, client")
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None

    async def connect(self, deadline: Deadline) -> None:
        connection = await aio_pika.connect(
            self.address.plain(), timeout=deadline.left, ssl_context=self._tls, **self._client_options
        )
        self._connection = connection
        connection.close_callbacks.add(self._closed)
        self._channel = await connection.channel(publisher_confirms=True, on_return_raises=True)

    async def disconnect(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            await connection.close()

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        return await each(messages, self._one, deadline)

    async def _one(self, message: Message) -> Outcome:
        exchange, routing_key = _filled(self._exchange, message), _filled(self._routing_key, message)
        if len(routing_key.encode()) > _LONGEST_KEY:
            return Refused(f"its routing key is longer than {_LONGEST_KEY} bytes")
        if self._channel is None:
            return Failed("the connection was lost")
        headers, content_type, body = self._packing.pack(message)
        outgoing = aio_pika.Message(
            body,
            headers=dict(headers),
            content_type=content_type,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=str(message.id),
            timestamp=message.time,
            type=message.type,
        )
        try:
            target = self._channel.default_exchange if not exchange else await self._named(self._channel, exchange)
            await target.publish(outgoing, routing_key, mandatory=self._mandatory)
        except PublishError:
            return Refused(
                f"no queue receives routing key {routing_key!r} of exchange {exchange!r}: declare and bind one"
            )
        except DeliveryError as error:  # such as a full queue that rejects
            return Failed(f"the broker answered {type(error.frame).__name__}: a queue may be full")
        except (AMQPError, ChannelInvalidStateError, OSError, RuntimeError) as error:
            return self._broken(error, exchange, body)
        return SENT

    @staticmethod
    async def _named(channel: AbstractChannel, exchange: str) -> aio_pika.abc.AbstractExchange:
        return await channel.get_exchange(exchange, ensure=False)

    def _broken(self, error: Exception, exchange: str, body: bytes) -> Outcome:
        """The channel is closed for all; the one that caused it is refused, the others go out again."""
        failed = self.lost(error)
        missing, too_large = _NO_EXCHANGE.search(str(error)), _TOO_LARGE.search(str(error))
        if missing and missing[1] == exchange:
            return Refused(f"there is no exchange {exchange!r}: declare it")
        if too_large and int(too_large[1]) == len(body):
            return Refused(failed.reason)
        return failed

    def _closed(self, *_: object) -> None:
        self._lost = True


def _filled(template: str, message: Message) -> str:
    return (
        template.replace("{topic}", message.topic)
        .replace("{type}", message.type or message.topic)
        .replace("{key}", message.key or "")
    )
