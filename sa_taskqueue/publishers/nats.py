"""NATS JetStream, by nats-py: the message's id is the server's key against duplicates."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from sa_taskqueue.publishers.base import SENT, Failed, Message, Outcome, Refused
from sa_taskqueue.publishers.connected import ConnectedPublisher
from sa_taskqueue.publishers.deadline import Deadline, each
from sa_taskqueue.publishers.envelope import Packing
from sa_taskqueue.publishers.tls import tls_context

_TOO_LARGE = 10054
"""JetStream's code for a message above the stream's own limit."""

_NO_RESPONDERS = "503"

_SUBJECT = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")


class NATSPublisher(ConnectedPublisher):
    """Publishes to the subject of the topic's name, of which a stream must keep what comes.

    Options: ``cloudevents``, ``timeout``; ``tls://`` with ``cafile``, ``certfile``, ``keyfile``; ``client`` for nats-py
    (such as ``user_credentials``, ``token``).
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._packing = Packing.of(given, percent_encoded=True)
        self._tls = tls_context(given) if self.address.scheme == "tls" else None
        self._client_options = given.mapping("client")
        given.finish("cloudevents, timeout, cafile, certfile, keyfile, client")
        self._client: Client | None = None
        self._stream: JetStreamContext | None = None
        self._inbox = ""
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[Outcome | None]] = {}

    async def connect(self, deadline: Deadline) -> None:
        scheme, hosts = self.address.scheme, self.address.hosts
        given: dict[str, Any] = {
            "user": self.address.user,
            "password": self.address.password,
            "connect_timeout": deadline.left,
            # The publisher connects anew itself, and then knows what was not confirmed.
            "allow_reconnect": False,
            "error_cb": _ignore,
            "disconnected_cb": self._cut,
            "closed_cb": self._cut,
            "tls": self._tls,
        }
        self._client = await nats.connect(
            [f"{scheme}://{host}" for host in hosts.split(",")], **{**given, **self._client_options}
        )
        self._stream = self._client.jetstream()
        # Acknowledgements by hand: nats-py 2.16 loses an error in answer to publish_async, and its publish, which is a
        # request of its own for each message, does not hear of a lost connection.
        self._inbox = self._client.new_inbox()
        await self._client.subscribe(f"{self._inbox}.*", cb=self._answered)
        await self._client.flush(max(1, int(deadline.left)))

    async def disconnect(self) -> None:
        client, self._client, self._stream = self._client, None, None
        if client is not None:
            await client.close()

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        return await each(messages, self._one, deadline)

    async def _one(self, message: Message) -> Outcome:
        unsendable = self._packing.unsendable(message)
        if unsendable is not None or not _SUBJECT.fullmatch(message.topic):
            return Refused(unsendable or f"{message.topic!r} is no subject that can be published to")
        if self._lost or self._client is None or self._stream is None:
            return Failed("the connection was lost")
        headers, content_type, body = self._packing.pack(message)
        headers |= {"Nats-Msg-Id": str(message.id), "Content-Type": content_type}
        if self._packing.mode == "binary":
            headers["ce-datacontenttype"] = content_type
        if len(body) + _size(headers) > self._client.max_payload:
            return Refused("it is larger than the server's max_payload")
        reply = f"{self._inbox}.{next(self._numbers)}"
        answer = self._waiting[reply] = asyncio.get_running_loop().create_future()
        try:
            await self._client.publish(message.topic, body, reply, headers)
            return await answer or await self._without_stream(message.topic)
        except (Error, OSError) as error:
            return self.lost(error)
        finally:
            self._waiting.pop(reply, None)

    async def _answered(self, answer: Msg) -> None:
        waiting = self._waiting.get(answer.subject)
        if waiting is None or waiting.done():
            return
        if answer.headers and answer.headers.get("Status") == _NO_RESPONDERS:
            waiting.set_result(None)
            return
        said: dict[str, Any] = json.loads(answer.data)
        error = said.get("error")
        if error is None:
            waiting.set_result(SENT)
        else:
            reason = f"JetStream answered {error.get('err_code')}: {error.get('description')}"
            waiting.set_result(Refused(reason) if error.get("err_code") == _TOO_LARGE else Failed(reason))

    async def _without_stream(self, subject: str) -> Outcome:
        """Nobody answered: either no stream keeps the subject, or its server is not there just now."""
        try:
            if self._stream is not None:
                await self._stream.find_stream_name_by_subject(subject)
        except NotFoundError:
            return Refused(f"no stream of JetStream keeps the subject {subject}: add one with that subject")
        except (Error, OSError, TimeoutError):
            pass
        return Failed(f"nobody took the subject {subject}; its stream may be without a leader")

    async def _cut(self) -> None:
        self._lost = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the connection was lost before the answer"))


def _size(headers: dict[str, str]) -> int:
    """Bytes of the headers in the protocol, whose limit counts them too: the client looks at the payload alone."""
    lines = (len(name.encode()) + len(value.encode()) + len(": \r\n") for name, value in headers.items())
    return len("NATS/1.0\r\n\r\n") + sum(lines)


async def _ignore(_error: Exception) -> None:
    """The errors are those of the calls; nats-py would log each again."""
