"""Against a real HTTP server, whose signatures the library of Standard Webhooks checks."""

from __future__ import annotations

import base64
import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from sa_taskqueue import events
from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.publishers import Failed, HeldBack, Refused, Sent, publisher_for
from tests.publishers.conftest import Open
from tests.publishers.messages import all_sent, keyed, message

pytest.importorskip("httpx")

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes ....").decode()


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps what it gets; answers as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.status: int | Callable[[bytes], int] = 204
        self.answer_headers: dict[str, str] = {}
        self.released = threading.Event()
        self.released.set()
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.server.released.wait(60)
        status = self.server.status
        self.send_response(status(body) if callable(status) else status)
        for name, value in self.server.answer_headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


@pytest.mark.parametrize("mode", ["binary", "structured"])
async def test_a_message_arrives_whole_and_signed(receiver: Receiver, opened: Open, mode: str) -> None:
    webhooks = pytest.importorskip("standardwebhooks.webhooks")
    sent = message("orders.done", key="köln", seq=3, number=5, headers={"shop": "north"})
    url = f"{receiver.url}/hooks/{{topic}}?tenant=1&cloudevents={mode}"
    async with opened(url, secret=SECRET) as publisher:
        assert all_sent(await publisher.publish([sent]))
    ((path, headers, body),) = receiver.got
    assert path == "/hooks/orders.done?tenant=1"
    assert headers["webhook-id"] == str(sent.id)
    webhooks.Webhook(SECRET).verify(body, headers)
    with pytest.raises(webhooks.WebhookVerificationError):
        webhooks.Webhook(SECRET).verify(body + b" ", headers)
    read = events.read(headers, body, percent_encoded=True)
    assert (read.id, read.key, read.seq, read.data) == (str(sent.id), "köln", 3, {"number": 5})
    assert headers["shop"] == "north"
    assert headers["sa-taskqueue-seq"] == "3"


async def test_two_secrets_sign_while_one_replaces_the_other(receiver: Receiver, opened: Open) -> None:
    webhooks = pytest.importorskip("standardwebhooks.webhooks")
    newer = "whsec_" + base64.b64encode(b"another secret of thirty-two byte").decode()
    async with opened(receiver.url, secret=f"{newer} {SECRET}") as publisher:
        assert all_sent(await publisher.publish([message()]))
    ((_, headers, body),) = receiver.got
    for secret in (SECRET, newer):
        webhooks.Webhook(secret).verify(body, headers)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, Sent),
        (202, Sent),
        (302, Refused),
        (400, Refused),
        (401, Refused),
        (404, Refused),
        (408, Failed),
        (410, Refused),
        (413, Refused),
        (425, Failed),
        (429, Failed),
        (500, Failed),
        (503, Failed),
    ],
)
async def test_the_status_says_what_became_of_it(receiver: Receiver, opened: Open, status: int, kind: type) -> None:
    receiver.status = status
    async with opened(receiver.url) as publisher:
        (outcome,) = await publisher.publish([message()])
    assert isinstance(outcome, kind)
    assert isinstance(outcome, Sent) or str(status) in outcome.reason  # type: ignore[union-attr]


async def test_retry_after_is_handed_on(receiver: Receiver, opened: Open) -> None:
    receiver.status = 429
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    async with opened(receiver.url) as publisher:
        for value, low, high in (("17", 17, 17), (later, 3000, 3600), ("soon", None, None), ("-5", None, None)):
            receiver.answer_headers = {"retry-after": value}
            (outcome,) = await publisher.publish([message()])
            assert isinstance(outcome, Failed)
            assert outcome.retry_after == low or (outcome.retry_after and low < outcome.retry_after <= high)  # type: ignore[operator]


async def test_a_refused_message_holds_back_its_key_alone(receiver: Receiver, opened: Open) -> None:
    batch = keyed("orders", 2, 3)
    wrong = batch[2].payload
    batch[3:4] = [message("orders", key="key-1", seq=2, payload=b'{"number": "two"}')]
    receiver.status = lambda body: 422 if body == b'{"number": "two"}' else 200
    async with opened(receiver.url) as publisher:
        outcomes = await publisher.publish(batch)
    assert wrong in [body for _, _, body in receiver.got]
    assert [type(outcome) for outcome in outcomes] == [Sent, Sent, Sent, Refused, Sent, HeldBack]


async def test_a_receiver_that_does_not_answer_fails_in_bounded_time(receiver: Receiver, opened: Open) -> None:
    receiver.released.clear()
    async with opened(receiver.url, timeout=0.5) as publisher:
        outcomes = await publisher.publish([message() for _ in range(3)])
        assert {type(outcome) for outcome in outcomes} == {Failed}
        receiver.released.set()
    async with opened(receiver.url) as publisher:
        assert all_sent(await publisher.publish([message()]))


async def test_nobody_listening_is_a_failure(opened: Open) -> None:
    async with opened("http://user:pa55word@127.0.0.1:9/hook") as publisher:
        (outcome,) = await publisher.publish([message()])
    assert isinstance(outcome, Failed)
    assert "pa55word" not in outcome.reason + repr(publisher)


@pytest.mark.parametrize("headers", [{"a": "b\r\nx: y"}, {"content-length": "5"}, {"a b": "c"}])
async def test_a_header_that_would_break_the_request_is_refused(
    receiver: Receiver, opened: Open, headers: dict[str, str]
) -> None:
    async with opened(receiver.url) as publisher:
        (outcome,) = await publisher.publish([message(headers=headers)])
    assert isinstance(outcome, Refused)
    assert not receiver.got


async def test_the_receivers_certificate_is_verified(receiver: Receiver, opened: Open, tmp_path: Path) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True, do_handshake_on_connect=False)
    receiver.scheme = "https"
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with opened(receiver.url) as publisher:
        (outcome,) = await publisher.publish([message()])
        assert isinstance(outcome, Failed)
        assert "certificate" in outcome.reason.lower()
    assert not receiver.got
    async with opened(f"{receiver.url}?cafile={tmp_path / 'ca.pem'}") as publisher:
        assert all_sent(await publisher.publish([message()]))


def test_a_secret_that_is_none_is_refused_without_being_told() -> None:
    with pytest.raises(InvalidSetting, match="secret") as caught:
        publisher_for("https://host", secret="not base64!")
    assert "not base64!" not in str(caught.value)
