"""A relay kills itself at every fault point in turn: everything arrives, in order for each key, duplicates known."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, insert

from sa_taskqueue import MessageStatus, new_id
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.relay.faults import POINTS
from tests.relay.relay_process import HANG
from tests.relay.support import MESSAGES, Outbox, violations
from tests.relay.test_redis import Stream, broker_url  # noqa: F401 - a fixture
from tests.support import TIMEOUT, eventually

redis = pytest.importorskip("redis")

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.relay.relay_process", *arguments]
    started = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def put(outbox: Outbox, topic: str, point: str) -> int:
    """What takes a relay to the point; how many messages."""
    if point == "relay.number.before_commit":
        row = {"id": new_id(), "topic": topic, "payload": "0", "key": "a", "key_hash": key_hash("a")}
        with outbox.engine.begin() as connection:
            connection.execute(insert(MESSAGES), row)
        return 1
    if point == "relay.promote.before_commit":
        outbox.put(topic, 0, run_after=timedelta(seconds=0.2))
        return 1
    for n in range(3):
        outbox.put(topic, n, key="a")
        outbox.put(topic, n, key="b")
        outbox.put(topic, n)
    return 9


def test_a_relay_may_die_at_every_point(
    url: URL,
    outbox: Outbox,
    broker_url: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    database = url.render_as_string(hide_password=False)
    stream = Stream(redis.Redis.from_url(broker_url), f"relay-test-{uuid.uuid4().hex}")
    reached: dict[str, int] = {}
    stored = 0
    for point in sorted(POINTS):
        file = tmp_path / f"{point}.txt"
        stored += put(outbox, stream.name, point)
        if point == "relay.take_over.before_commit":
            with process(database, broker_url, str(tmp_path / "before.txt"), "relay.claim.after_commit") as dying:
                assert dying.wait(TIMEOUT) == -9
        to = HANG if point == "relay.renew.before_send" else broker_url
        with process(database, to, str(file), point) as dying:
            assert dying.wait(TIMEOUT) == -9, f"{point} was never reached"
        reached[point] = file.read_text().splitlines().count(point)
    file = tmp_path / "last.txt"
    with process(database, broker_url, str(file)) as last:
        eventually(lambda: outbox.statuses() == {MessageStatus.SENT: stored})
        last.terminate()
        assert last.wait(TIMEOUT) == 0
    with capsys.disabled():
        print("\nreached: " + "  ".join(f"{point}={times}" for point, times in reached.items()))
    assert min(reached.values()) > 0
    entries = Counter(entry["sa-taskqueue-id"] for entry in stream.entries())
    assert len(entries) == stored
    assert entries.total() > stored, "nothing came twice, so nobody died between the confirmation and the mark"
    numbers = stream.numbers()
    assert {key: violations(some) for key, some in numbers.items()} == {"a": [], "b": []}
    stream.client.delete(stream.name)
