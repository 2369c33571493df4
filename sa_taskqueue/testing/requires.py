"""Marks of tests that need what not every database has: `@requires.skip_locked`. See `Requirements`."""

from __future__ import annotations

import pytest

concurrent_writers = pytest.mark.usefixtures("requires_concurrent_writers")
row_locks = pytest.mark.usefixtures("requires_row_locks")
skip_locked = pytest.mark.usefixtures("requires_skip_locked")
