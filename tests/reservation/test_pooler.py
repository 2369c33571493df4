"""AdvisoryLock behind a transaction pooler is refused: PgBouncer, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, create_engine

from sa_taskqueue.exceptions import UnsupportedReservation
from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.reservation import AdvisoryLock
from sa_taskqueue.states import Status
from sa_taskqueue.worker import Worker
from tests.support import eventually
from tests.worker.support import Database, drain

pytestmark = pytest.mark.servers("postgresql")


@pytest.fixture
def readable() -> Iterator[Path]:
    """A directory that every user may read: PgBouncer is not run as root."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


@pytest.fixture
def pooled(request: pytest.FixtureRequest, url: URL, readable: Path) -> Iterator[Engine]:
    """An engine that connects through a PgBouncer of the mode that the test asks for."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    if url.password is not None or os.name != "posix":
        pytest.skip("the server asks for a password")
    port = _free_port()
    settings = readable / "pgbouncer.ini"
    settings.write_text(
        f"""
[databases]
{url.database} = host={url.host} port={url.port or 5432} dbname={url.database} user={url.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {request.param}
ignore_startup_parameters = extra_float_digits
"""
    )
    with subprocess.Popen([program, *_as_somebody(), str(settings)], stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: _answers(port) or process.poll() is not None)
            if process.poll() is not None:
                pytest.skip("pgbouncer does not start here")
            through = url.set(host="127.0.0.1", port=port)
            engine = create_engine(through, connect_args={"prepare_threshold": None})
            yield engine
            engine.dispose()
        finally:
            process.terminate()


@pytest.mark.parametrize("pooled", ["transaction"], indirect=True)
def test_a_transaction_pooler_is_refused_with_the_reason(pooled: Engine, db: Database, queue: TaskQueue) -> None:
    with pytest.raises(UnsupportedReservation, match=r"pooler.*lease"):
        drain(Worker(queue, pooled, reservation=AdvisoryLock(), drain=True))


@pytest.mark.parametrize("pooled", ["session"], indirect=True)
def test_a_session_pooler_will_do(pooled: Engine, db: Database, queue: TaskQueue) -> None:
    @queue.task
    def work(n: int) -> None: ...

    db.put_many(work, 20)
    drain(Worker(queue, pooled, reservation=AdvisoryLock(), drain=True))
    assert db.statuses() == {Status.COMPLETED: 20}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _as_somebody() -> list[str]:
    """PgBouncer does not run as root."""
    return ["--user", "nobody"] if os.geteuid() == 0 else []
