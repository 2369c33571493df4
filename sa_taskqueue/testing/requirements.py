"""What a test needs of the database beyond the promises: read from the adapter's flags."""

from __future__ import annotations

from sqlalchemy import select

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.testing.models import TASKS


class Requirements:
    """Each is None where the database has it, else the reason for which a test that needs it is skipped.

    A subclass, given by the fixture `requirements`, may say otherwise than the adapter's flags.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    @property
    def skip_locked(self) -> str | None:
        """Rows that another transaction has locked are passed by."""
        pick = select(TASKS.c.id)
        return self._unless(self.adapter.skip_locked(pick) is not pick, "SKIP LOCKED")

    @property
    def row_locks(self) -> str | None:
        """A transaction can lock rows without changing them."""
        return self._unless(self.adapter.lock(TASKS) is not None, "row locks")

    @property
    def concurrent_writers(self) -> str | None:
        """Two transactions that write may be open at once."""
        return self._unless(not self.adapter.single_writer, "two writers at a time")

    def _unless(self, offered: bool, what: str) -> str | None:
        return None if offered else f"{self.adapter.name} has no {what}"
