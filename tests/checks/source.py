"""Reading the project's Python files for the checks beside this module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sa_taskqueue"


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text, self.name)))

    def imports(self) -> Iterator[tuple[str, int]]:
        """Each imported module with the line of its import, also those inside functions."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module, node.lineno

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of a function or method with one of these names."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                if name in names:
                    yield node


def sources(*folders: Path) -> list[Source]:
    return [Source(path) for folder in folders for path in sorted(folder.rglob("*.py"))]


def in_package(*parts: str) -> list[Source]:
    """Files of these folders or modules of the package; all of it if none is named."""
    if not parts:
        return sources(PACKAGE)
    return [
        source
        for part in parts
        for source in (sources(PACKAGE / part) or [Source(PACKAGE / f"{part}.py")])
        if source.path.exists()
    ]
