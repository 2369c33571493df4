"""Celery's and Dramatiq's queues: their own workers run what was published."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from sa_taskqueue.publishers import Refused, Sent
from tests.checks.source import ROOT
from tests.publishers.conftest import Open
from tests.publishers.messages import message
from tests.support import eventually_async

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CELERY = """
import json, os, sys
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER"])
app.conf.task_default_queue = os.environ["QUEUE"]
app.conf.broker_connection_retry_on_startup = True

@app.task(name="send_receipt", bind=True)
def send_receipt(self, order_id, lang="en"):
    with open(os.environ["FOUND"], "a") as found:
        print(json.dumps([self.request.id, order_id, lang]), file=found, flush=True)
"""

DRAMATIQ = """
import json, os
import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage
url = os.environ["BROKER"]
broker = RabbitmqBroker(url=url) if url.startswith("amqp") else RedisBroker(url=url)
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)

@dramatiq.actor(actor_name="send_receipt", queue_name=os.environ["QUEUE"])
def send_receipt(order_id, lang="en"):
    with open(os.environ["FOUND"], "a") as found:
        print(json.dumps([CurrentMessage.get_current_message().message_id, order_id, lang]), file=found, flush=True)
"""

WORKERS = {
    "celery": (CELERY, ["-m", "celery", "-A", "app", "worker", "-P", "solo", "--without-gossip", "--without-mingle"]),
    "dramatiq": (DRAMATIQ, ["-m", "dramatiq", "app", "-p", "1", "-t", "1"]),
}


@pytest.mark.parametrize("broker", ["rabbitmq", "valkey"])
@pytest.mark.parametrize("framework", list(WORKERS))
async def test_its_own_worker_runs_the_message(
    framework: str, broker: str, found: Callable[[str], str], opened: Open, tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    url, queue = found(broker), f"q{uuid.uuid4().hex}"
    text, command = WORKERS[framework]
    (tmp_path / "app.py").write_text(text)
    results = tmp_path / "found.txt"
    results.touch()
    batch = [
        message("send_receipt", payload=json.dumps({"order_id": 5, "lang": "fr"}).encode(), key="5", seq=1),
        message("send_receipt", payload=b"[6]", key="5", seq=2),
        message("send_receipt", payload=b'"text"'),
    ]
    async with opened(f"{framework}+{url}?queue={queue}") as publisher:
        outcomes = await publisher.publish(batch)
    assert [type(outcome) for outcome in outcomes] == [Sent, Sent, Refused]
    own = {"BROKER": url, "QUEUE": queue, "FOUND": str(results), "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    worker = _started([sys.executable, *command], tmp_path, own)
    try:
        await eventually_async(lambda: results.read_text().count("\n") == 2 or worker.poll() is not None)
    finally:
        worker.terminate()
        worker.wait(60)
    ran = [json.loads(line) for line in results.read_text().splitlines()]
    assert ran == [[str(batch[0].id), 5, "fr"], [str(batch[1].id), 6, "en"]], (tmp_path / "log").read_text()[-2000:]


def _started(command: list[str], folder: Path, own: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env={**os.environ, **own}, stdout=log, stderr=log)
