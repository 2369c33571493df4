"""One worker process: ``python worker.py URL NAME``. It runs until it is told to stop.

``sa-taskqueue worker app:queue`` does the same from the command line; here the lease is short, so that the tasks of a
killed worker are taken over within seconds.
"""

from __future__ import annotations

import sys

from app import engine_for, queue

from sa_taskqueue import Worker

LEASE_SECONDS = 5.0


def main(url: str, name: str) -> None:
    Worker(queue, engine_for(url), queues={"receipts": 4}, lease=LEASE_SECONDS, name=name).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
