"""The hashes that stand for keys: of fixed width, and blind to collations ("dup" is not "DUP ")."""

from __future__ import annotations

import hashlib
import uuid


def unique_hash(name: str, key: str) -> bytes:
    """32 bytes that stand for a key of one task name."""
    return hashlib.sha256(f"{name}\0{key}".encode()).digest()


def key_hash(key: str) -> uuid.UUID:
    """The id of the row of a key of the outbox: the first 16 bytes of its SHA-256, which any language can make."""
    return uuid.UUID(bytes=hashlib.sha256(key.encode()).digest()[:16])


def inbox_id(source: str, message_id: str) -> uuid.UUID:
    """The id of the row of a message in the inbox."""
    return key_hash(f"{source}\0{message_id}")


def inbox_key_id(source: str, key: str) -> uuid.UUID:
    """The id of the row of a key in the inbox; an id of a message begins with no NUL."""
    return key_hash(f"{source}\0\0{key}")
