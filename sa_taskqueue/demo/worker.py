"""One of the demo's workers: ``python -m sa_taskqueue.demo.worker FILE NAME``."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from sa_taskqueue.demo.shop import open_shop, queue
from sa_taskqueue.worker import Worker

LEASE_SECONDS = 3.0
"""Short, so that the show need not wait long for the tasks of the killed worker."""
MAX_CRASHES = 20
"""A machine too busy to renew such a short lease in time must not end in failed tasks."""


def main(file: str, name: str) -> None:
    logging.getLogger("sa_taskqueue").setLevel(logging.ERROR)
    worker = Worker(
        queue, open_shop(Path(file)), queues={"receipts": 4}, name=name, lease=LEASE_SECONDS, max_crashes=MAX_CRASHES
    )
    worker.run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
