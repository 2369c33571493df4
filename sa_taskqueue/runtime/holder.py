"""The name under which a worker or a relay holds rows, and the check of its numbers."""

from __future__ import annotations

import os
import secrets
import socket

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.runtime.errors import storable


def holder_name() -> str:
    """A name that tells host and process, and is new each time."""
    host = storable(socket.gethostname())  # bytes of any encoding, as far as the system is concerned
    return f"{host[:150]}:{os.getpid()}:{secrets.token_hex(4)}"


def check_holder(name: str) -> None:
    """InvalidSetting for a name that does not go into the column `reserved_by`."""
    if not 1 <= len(name) <= 200 or storable(name) != name:
        allowed = "1 to 200 characters, no NUL and no half of a surrogate pair"
        raise InvalidSetting(setting="name", value=name, allowed=allowed)


def between(setting: str, value: float, least: float, most: float) -> None:
    """InvalidSetting for what is no number of that range."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidSetting(setting=setting, value=value, allowed=f"from {least:g} to {most:g}")
