from __future__ import annotations

from dataclasses import dataclass, field

import pytest


@dataclass
class Choice:
    """The servers of this run: their administrator's URL, or why one has none."""

    names: list[str]
    urls: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


CHOICE = pytest.StashKey[Choice]()
