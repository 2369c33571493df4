"""These tests put workers to work as those of tests.worker do, with the same fixtures."""

from __future__ import annotations

from tests.worker.conftest import db, queue, worker_engine

__all__ = ["db", "queue", "worker_engine"]
