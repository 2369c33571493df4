"""A relay process of the crash tests: ``python -m tests.relay.relay_process DATABASE BROKER FILE [POINT]``.

It writes the name of each fault point it reaches to the file, and kills itself at the one that it is given.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

from sqlalchemy import create_engine, make_url

from sa_taskqueue import Relay, prepare_sqlite
from sa_taskqueue.publishers import Message
from sa_taskqueue.relay.faults import POINTS
from sa_taskqueue.runtime import faults
from tests.outbox.models import queue

LEASE = 2.0

HANG = "hang"
"""Instead of a broker: a function that never returns, so that the leases are renewed."""


async def hang(_message: Message) -> None:
    await asyncio.Event().wait()


def main(url: str, to: str, file: str, at: str = "") -> None:
    if at and at not in POINTS:
        raise SystemExit(f"there is no point {at!r}")
    lock = threading.Lock()

    def hook(name: str) -> None:
        with lock, open(file, "a", encoding="utf-8") as reached:
            reached.write(f"{name}\n")
        if name == at:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.install(hook)
    engine = create_engine(url)
    if make_url(url).get_backend_name() == "sqlite":
        prepare_sqlite(engine)
    destination = hang if to == HANG else to
    Relay(queue, engine, to=destination, lease=LEASE, batch=20, poll_max=0.2).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
