"""HTTP, by httpx: one POST for each message, signed by the scheme of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import email.utils
import hashlib
import hmac
import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers.base import SENT, Failed, Message, Outcome, Refused
from sa_taskqueue.publishers.connected import ConnectedPublisher
from sa_taskqueue.publishers.deadline import Deadline, each
from sa_taskqueue.publishers.envelope import Packing
from sa_taskqueue.publishers.tls import tls_context

_MAY_PASS = {408, 425, 429}
_CLIENTS_OWN = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}


class WebhookPublisher(ConnectedPublisher):
    """Sent is what is answered with 2xx; other 4xx than 408, 425 and 429 refuse, all else may pass.

    Options: ``secret`` (``whsec_...``; several, separated by spaces, while one is replaced by another) signs;
    ``connections`` at once (default 20), ``cloudevents``, ``timeout``, ``cafile``, ``certfile``, ``keyfile``;
    ``client`` for httpx. ``{topic}`` in the path is filled in. User and password of the URL are sent as basic
    authentication. What else the URL's query holds stays there.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, options)
        given = self.address.options
        self._packing = Packing.of(given, percent_encoded=True)
        self._keys = [_key(secret) for secret in given.text("secret", "").split()]
        self._connections = given.whole("connections", 20, lowest=1)
        self._tls = tls_context(given) if self.address.scheme == "https" else None
        self._client_options = given.mapping("client")
        self._query = given.rest()
        self._client: httpx.AsyncClient | None = None

    async def connect(self, deadline: Deadline) -> None:
        """Makes no connection yet: a receiver may have nothing but its one address."""
        given: dict[str, Any] = {
            "timeout": self.timeout,
            "limits": httpx.Limits(max_connections=self._connections),
            "auth": (self.address.user, self.address.password or "") if self.address.user else None,
            "verify": self._tls if self._tls is not None else True,
            # A redirect to elsewhere would carry the message, and its signature, where nobody meant it to go.
            "follow_redirects": False,
            "trust_env": False,
        }
        self._client = httpx.AsyncClient(**{**given, **self._client_options})

    async def disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(self, messages: Sequence[Message], deadline: Deadline) -> Sequence[Outcome]:
        return await each(messages, self._one, deadline, at_once=self._connections)

    async def _one(self, message: Message) -> Outcome:
        unsendable = self._packing.unsendable(message)
        clash = _CLIENTS_OWN.intersection(name.lower() for name in message.headers)
        if unsendable or clash:
            return Refused(unsendable or f"the header {clash.pop()} is the connection's own: use another name")
        if self._client is None:
            return Failed("the connection was lost")
        headers, content_type, body = self._packing.pack(message)
        headers |= {"content-type": content_type, **self._signed(str(message.id), body)}
        url = f"{self.address.scheme}://{self.address.hosts}{self.address.path.replace('{topic}', message.topic)}"
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        try:
            answer = await self._client.post(url, content=body, headers=encoded, params=self._query or None)
        except (httpx.HTTPError, OSError) as error:
            return self.failed(error)
        return _outcome(answer)

    def _signed(self, id_: str, body: bytes) -> dict[str, str]:
        """The headers of Standard Webhooks 1.0: HMAC-SHA256 of id, seconds and body, joined by dots."""
        now = str(int(time.time()))
        signed = b"%b.%b.%b" % (id_.encode(), now.encode(), body)
        macs = (hmac.new(key, signed, hashlib.sha256).digest() for key in self._keys)
        signature = " ".join(f"v1,{base64.b64encode(mac).decode()}" for mac in macs)
        headers = {"webhook-id": id_, "webhook-timestamp": now}
        return {**headers, "webhook-signature": signature} if signature else headers


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise InvalidSetting(
            setting="secret", value="***", allowed="base64, with or without whsec_ before it"
        ) from None


def _outcome(answer: httpx.Response) -> Outcome:
    if answer.is_success:
        return SENT
    reason = f"the receiver answered {answer.status_code} {answer.reason_phrase}"
    if answer.is_client_error and answer.status_code not in _MAY_PASS:
        return Refused(reason)
    if answer.is_redirect:
        return Refused(f"{reason}: use the URL that it points to")
    return Failed(reason, _retry_after(answer.headers.get("retry-after")))


def _retry_after(value: str | None) -> float | None:
    """Seconds, from seconds or from a date; None if it says neither."""
    if value is None:
        return None
    try:
        seconds = float(value)
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    except ValueError:
        pass
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
