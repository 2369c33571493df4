"""The hash that stands for a unique key."""

from __future__ import annotations

import hashlib


def unique_hash(name: str, key: str) -> bytes:
    """32 bytes that stand for a key of one task name: fixed width, and blind to collations ("dup" is not "DUP ")."""
    return hashlib.sha256(f"{name}\0{key}".encode()).digest()
