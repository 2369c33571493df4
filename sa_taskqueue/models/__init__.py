"""Mixins that make the user's own mapped classes the library's tables."""

from __future__ import annotations

from sa_taskqueue.models.crash_note import CrashNoteMixin
from sa_taskqueue.models.queue import QueueDataclassMixin, QueueMixin
from sa_taskqueue.models.reservation import ReservationMixin

__all__ = ["CrashNoteMixin", "QueueDataclassMixin", "QueueMixin", "ReservationMixin"]
