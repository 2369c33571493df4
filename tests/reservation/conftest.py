"""The fixtures of the worker's tests: strategies are tested through the worker that uses them."""

from __future__ import annotations

from tests.worker.conftest import db, worker_engine

__all__ = ["db", "worker_engine"]
