from __future__ import annotations

import logging

import pytest

from sa_taskqueue import telemetry
from sa_taskqueue.telemetry import ConnectionLost, Event


def test_a_listener_hears_events_until_it_leaves() -> None:
    heard: list[Event] = []
    assert not telemetry.listening()
    leave = telemetry.subscribe(heard.append)
    assert telemetry.listening()
    telemetry.emit(ConnectionLost("claim"))
    leave()
    telemetry.emit(ConnectionLost("finish"))
    assert heard == [ConnectionLost("claim")]
    assert not telemetry.listening()


def test_a_listener_that_raises_is_logged_and_the_others_still_hear(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("broken listener")

    heard: list[Event] = []
    leave = [telemetry.subscribe(broken), telemetry.subscribe(heard.append)]
    try:
        with caplog.at_level(logging.ERROR, "sa_taskqueue"):
            telemetry.emit(ConnectionLost("claim"))
    finally:
        for each in leave:
            each()
    assert heard == [ConnectionLost("claim")]
    assert "broken listener" in caplog.text
