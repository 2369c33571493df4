"""Redis and Valkey Streams, by redis-py: XADD to the stream of the topic's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from sa_taskqueue.publishers.base import SENT, Failed, Message, Outcome, Refused
from sa_taskqueue.publishers.connected import ConnectedPublisher
from sa_taskqueue.publishers.deadline import Deadline, outcomes_within
from sa_taskqueue.publishers.envelope import Packing
from sa_taskqueue.publishers.rounds import same_topic

_AT_ONCE = 1000
"""Messages in one MULTI: a longer one would keep the server's other clients waiting."""


class RedisPublisher(ConnectedPublisher):
    """One MULTI/EXEC for each topic: all of it or nothing, so that the order holds without waiting in between.

    The field ``data`` holds the payload, the other fields are the headers. Options: ``maxlen`` trims the stream to
    about that length, ``wait`` asks for that many replicas, ``cloudevents``, ``timeout``, ``client`` (for redis-py).
    """

    together = staticmethod(same_topic)

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._packing = Packing.of(given)
        self._maxlen = given.whole("maxlen", 0, lowest=0) or None
        self._replicas = given.whole("wait", 0, lowest=0)
        self._client_options = given.mapping("client")
        for name, ours in (("cafile", "ssl_ca_certs"), ("certfile", "ssl_certfile"), ("keyfile", "ssl_keyfile")):
            value = given.text_or_none(name)
            if value is not None:
                self._client_options.setdefault(ours, value)
        given.finish("maxlen, wait, cloudevents, timeout, cafile, certfile, keyfile, client")
        self._client: Redis | None = None

    async def connect(self, deadline: Deadline) -> None:
        secure = self.address.scheme in ("rediss", "valkeys")
        # One connection: WAIT speaks of the writes of its own. No retries: a MULTI sent again would be in twice.
        pool = BlockingConnectionPool.from_url(
            self.address.plain("rediss" if secure else "redis"),
            max_connections=1,
            timeout=self.timeout,
            socket_connect_timeout=self.timeout,
            socket_timeout=self.timeout,  # redis-py has 5 s of its own
            retry=Retry(NoBackoff(), 0),
            **self._client_options,
        )
        self._client = Redis(connection_pool=pool)
        await self._client.ping()

    async def disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
            await client.connection_pool.disconnect()

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [Failed("the connection was lost")] * len(messages)
        topics: dict[str, list[int]] = {}
        for place, message in enumerate(messages):
            topics.setdefault(message.topic, []).append(place)
        for places in topics.values():
            for start in range(0, len(places), _AT_ONCE):
                chunk = places[start : start + _AT_ONCE]
                sent = await self._send_chunk([messages[place] for place in chunk], deadline)
                for place, outcome in zip(chunk, sent, strict=True):
                    outcomes[place] = outcome
                if sent[0] is not SENT:
                    break  # what follows may be of the same keys
        return outcomes

    async def _send_chunk(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        if self._lost:
            return [Failed("the connection was lost")] * len(messages)
        sent = await outcomes_within(deadline, self._transaction(messages, deadline), len(messages))
        if deadline.missed in sent:
            self._lost = True
        return sent

    async def _transaction(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        client = self._client
        if client is None:
            return [Failed("the connection was lost")] * len(messages)
        try:
            async with client.pipeline(transaction=True) as pipeline:
                for message in messages:
                    headers, content_type, body = self._packing.pack(message)
                    fields: dict[Any, Any] = {**headers, "content-type": content_type, "data": body}
                    pipeline.xadd(message.topic, fields, maxlen=self._maxlen, approximate=True)
                answers = await pipeline.execute(raise_on_error=False)
            outcomes = [self._outcome(answer, message) for answer, message in zip(answers, messages, strict=True)]
            return await self._replicated(client, outcomes, deadline) if self._replicas else outcomes
        except ResponseError as error:  # out of memory, no permission, a replica: nothing of the transaction is in
            return [self.failed(error)] * len(messages)
        except (RedisError, OSError) as error:
            return [self.lost(error)] * len(messages)

    def _outcome(self, answer: object, message: Message) -> Outcome:
        if not isinstance(answer, Exception):
            return SENT
        if str(answer).startswith("WRONGTYPE") or "Operation against a key" in str(answer):
            return Refused(f"the key {message.topic} exists and is not a stream: delete it, or choose another topic")
        return self.failed(answer)

    async def _replicated(self, client: Redis, outcomes: Sequence[Outcome], deadline: Deadline) -> Sequence[Outcome]:
        milliseconds = max(1, int(deadline.left * 900))
        reached = await client.wait(self._replicas, milliseconds)
        if reached >= self._replicas:
            return outcomes
        missing = Failed(f"it reached {reached} of {self._replicas} replicas")
        return [missing if outcome is SENT else outcome for outcome in outcomes]
