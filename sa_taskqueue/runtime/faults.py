"""Named points at which a test may end the process or raise; without a hook a point is one comparison."""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def point(name: str) -> None:
    """Call the installed hook with the name of the point just reached, from whatever thread reached it."""
    if _hook is not None:
        _hook(name)


def install(hook: Callable[[str], None] | None) -> None:
    """Set the hook of this process, or take it away with None. For tests only."""
    global _hook  # noqa: PLW0603  one comparison is what a point may cost
    _hook = hook
