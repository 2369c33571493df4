"""The name of the channel on which a table's wake-ups travel."""

from __future__ import annotations

import hashlib
import re

from sqlalchemy import Table

_LIMIT = 63
_PREFIX = "sa_taskqueue_"


def channel_of(table: Table) -> str:
    """A name PostgreSQL takes without cutting it; the same in every process, different for every table and schema."""
    plain = table.fullname.replace(".", "__")
    if re.fullmatch(r"[a-z0-9_]+", plain) and "__" not in table.fullname and len(_PREFIX + plain) <= _LIMIT:
        return _PREFIX + plain
    return _PREFIX + hashlib.sha256(table.fullname.encode()).hexdigest()[:32]
