"""Kafka's protocol, by confluent-kafka: an idempotent producer, which keeps the order while it pipelines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from sa_taskqueue.publishers.base import SENT, Failed, Message, Outcome, Refused
from sa_taskqueue.publishers.connected import ConnectedPublisher
from sa_taskqueue.publishers.deadline import Deadline
from sa_taskqueue.publishers.envelope import Packing
from sa_taskqueue.publishers.rounds import same_topic

_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
# Not UNKNOWN_TOPIC_OR_PART: a broker answers so for a moment while a topic is being made, or it learns of it again.
_NO_TOPIC = {
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's own codes have no other name
}
_LONGEST_POLL = 0.1
_GRACE = 2.0
"""Seconds within which librdkafka reports what it gave up at the end of the call."""


class KafkaPublisher(ConnectedPublisher):
    """``acks=all``, idempotent; the key decides the partition. Topics are the brokers' to create.

    Options: ``cloudevents``, ``timeout``; every option with a dot in its name, and the keyword ``client``, is
    librdkafka's: ``?security.protocol=SASL_SSL&sasl.mechanism=PLAIN``; user and password of the URL are SASL's.
    """

    together = staticmethod(same_topic)

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._packing = Packing.of(given, "ce_")
        self._settings = {**given.dotted(), **given.mapping("client")}
        for name, ours in (
            ("cafile", "ssl.ca.location"),
            ("certfile", "ssl.certificate.location"),
            ("keyfile", "ssl.key.location"),
        ):
            value = given.text_or_none(name)
            if value is not None:
                self._settings.setdefault(ours, value)
        given.finish("cloudevents, timeout, cafile, certfile, keyfile, client, those of librdkafka")
        self._producer: Producer | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def connect(self, deadline: Deadline) -> None:
        self._thread = ThreadPoolExecutor(1, "sa-taskqueue-kafka")
        await self._run(self._start, deadline.left)

    async def disconnect(self) -> None:
        thread = self._thread
        try:
            if thread is not None:
                await self._run(self._stop)
        finally:
            self._thread = None
            if thread is not None:
                thread.shutdown(wait=False)

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [deadline.missed] * len(messages)
        await self._run(self._produce, list(messages), outcomes, deadline.left)
        return outcomes

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _start(self, seconds: float) -> None:
        milliseconds = max(1000, int(seconds * 1000))
        user = {"sasl.username": self.address.user, "sasl.password": self.address.password}
        self._producer = Producer(
            {
                "bootstrap.servers": self.address.hosts,
                "delivery.timeout.ms": max(1000, int(self.timeout * 1000)),
                "socket.connection.setup.timeout.ms": milliseconds,
                "request.timeout.ms": max(1000, int(self.timeout * 1000)),
                # A batch comes whole: there is nothing to linger for.
                "linger.ms": 0,
                "log.connection.close": False,
                **{name: value for name, value in user.items() if value is not None},
                **self._settings,
                "acks": "all",
                "enable.idempotence": True,
                # After a message that fails none of its partition may go out; the producer is then made anew.
                "enable.gapless.guarantee": True,
            },
            logger=_Silent(),
        )
        self._producer.list_topics(timeout=max(0.1, seconds))

    def _stop(self) -> None:
        """In the thread: librdkafka ends its own threads when the producer is freed, which takes its time."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # What is left must not go out after the relay has been told that it did not.
            producer.purge()

    def _produce(self, messages: list[Message], outcomes: list[Outcome], seconds: float) -> None:
        """Give all to librdkafka and wait for its reports; in the publisher's thread."""
        producer = self._producer
        until = time.monotonic() + seconds
        left = len(messages)
        if producer is None:
            return

        def report(place: int) -> Callable[[KafkaError | None, Any], None]:
            def delivered(error: KafkaError | None, _message: Any) -> None:
                nonlocal left
                left -= 1
                outcomes[place] = SENT if error is None else self._outcome(error)

            return delivered

        blocked: set[str] = set()
        for place, message in enumerate(messages):
            key = message.ordered_by
            wrong = None if key in blocked else self._hand_over(producer, message, report(place), until)
            if key in blocked or wrong is not None:
                outcomes[place] = wrong or outcomes[place]
                blocked |= {key} if key is not None else set()
                left -= 1
        while left and time.monotonic() < until + _GRACE:
            producer.poll(_LONGEST_POLL)

    def _hand_over(
        self, producer: Producer, message: Message, delivered: Callable[[KafkaError | None, Any], None], until: float
    ) -> Outcome | None:
        """Give one message to librdkafka; what is wrong with it, or None if a report will come."""
        headers, content_type, body = self._packing.pack(message)
        while True:
            try:
                producer.produce(
                    message.topic,
                    body,
                    None if message.key is None else message.key.encode(),
                    headers={**headers, "content-type": content_type},
                    timestamp=int(message.time.timestamp() * 1000),
                    on_delivery=delivered,
                )
                return None
            except BufferError as error:  # its queue is full: reports make room
                producer.poll(_LONGEST_POLL)
                if time.monotonic() > until:
                    return self.failed(error)
            except KafkaException as error:
                return self._outcome(error.args[0])

    def _outcome(self, error: KafkaError) -> Outcome:
        reason = self.address.hide(error.str())
        if error.code() in _TOO_LARGE:
            return Refused(reason)
        if error.code() in _NO_TOPIC:
            return Refused(f"{reason}: create the topic")
        self._lost = True  # after this the producer takes nothing more of the partition
        return Failed(reason)


class _Silent:
    """librdkafka's log, which repeats each second that a broker is away, and may hold the user's name."""

    def log(self, *_arguments: object, **_options: object) -> None: ...
