"""The loop that claims tasks, runs their handlers and finishes them."""

from sa_taskqueue.worker.counts import Counts
from sa_taskqueue.worker.settings import RECYCLE, WorkerSettings
from sa_taskqueue.worker.worker import Worker

__all__ = ["RECYCLE", "Counts", "Worker", "WorkerSettings"]
