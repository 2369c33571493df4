"""One relay process: ``python outbox_relay.py URL BROKER NAME``. It runs until it is told to stop.

``sa-taskqueue relay app:queue --to BROKER`` does the same; here the lease is short, and so are the batches, so that a
relay that is killed holds something and another goes on soon.
"""

from __future__ import annotations

import sys

from app import engine_for
from outbox_models import queue

from sa_taskqueue import Relay, fixed

LEASE_SECONDS = 5.0
UNLIMITED = fixed(0.5, max_attempts=1000)


def main(url: str, to: str, name: str) -> None:
    Relay(queue, engine_for(url), to=to, name=name, lease=LEASE_SECONDS, batch=20, retry=UNLIMITED, poll_max=0.5).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
