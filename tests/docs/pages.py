"""Finds the snippets and the generated tables of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.checks.source import ROOT

DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Snippet(NamedTuple):
    """A fenced block: its language, text, and the line of the page it begins at."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def snippets(page: Path, *languages: str) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _FENCE.finditer(text)
        if found[1] in languages
    ]
