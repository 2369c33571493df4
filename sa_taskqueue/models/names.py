"""Names of indexes and constraints: always explicit, short enough for every database, the same on all of them."""

from __future__ import annotations

import hashlib

from sqlalchemy.sql.elements import conv

NAME_LIMIT = 60
"""Characters. PostgreSQL cuts names silently at 63 bytes, MySQL and MariaDB refuse more than 64 characters."""

_DIGEST_LENGTH = 8


def explicit_name(prefix: str, table: str, role: str) -> conv:
    """`prefix_table_role`, which no naming convention rewrites; over the limit its end gives way to a hash."""
    name = f"{prefix}_{table}_{role}"
    if len(name.encode()) <= NAME_LIMIT:
        return conv(name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    kept = name.encode()[: NAME_LIMIT - _DIGEST_LENGTH - 1].decode(errors="ignore")
    return conv(f"{kept}_{digest}")
