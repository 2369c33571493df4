"""The headers that telemetry gives each message."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from sa_taskqueue import telemetry
from tests.outbox.models import queue


@pytest.fixture(autouse=True)
def nobody_carries() -> Iterator[None]:
    yield
    telemetry.carry(None)


def test_a_message_has_the_headers_of_the_moment_and_its_own_win() -> None:
    telemetry.carry(lambda: {"traceparent": "00-1", "tenant": "carried"})
    assert json.loads(queue.message("t", 1).headers or "") == {"traceparent": "00-1", "tenant": "carried"}
    assert json.loads(queue.message("t", 1, headers={"tenant": "own"}).headers or "")["tenant"] == "own"
    telemetry.carry(None)
    assert queue.message("t", 1).headers is None


def test_a_carrier_that_raises_is_logged_and_harms_no_message(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> dict[str, str]:
        raise RuntimeError("broken")

    telemetry.carry(broken)
    with caplog.at_level(logging.ERROR, "sa_taskqueue"):
        assert queue.message("t", 1, headers={"a": "b"}).headers == '{"a":"b"}'
    assert "carrier failed" in caplog.text
