"""Golden files are written by hand, from a source that they name, and by nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.checks.source import ROOT, Source

FILES = sorted((ROOT / "tests").rglob("golden*/**/*.sql"))
_SOURCE = re.compile(r"^-- .*https://\S+", re.MULTILINE)
_KNOWS = re.compile(r"[\"'/]golden|\bGOLDEN\b")
"""As a path, not as a word of a text."""

_WRITES = {"write_text", "write_bytes", "copy", "copyfile", "copy2", "copytree", "rename", "replace_file", "touch"}


def test_there_are_golden_files() -> None:
    assert len(FILES) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT / "tests").as_posix())
def test_each_names_its_source(path: object) -> None:
    text = (ROOT / str(path)).read_text()
    head = text[: re.search(r"^(?!--)", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    assert _SOURCE.search(head), "say which page of the vendor the statement was written from"


def readers() -> list[Source]:
    places = ("tests", "benchmarks", "sa_taskqueue", "examples")
    found = [Source(path) for place in places for path in sorted((ROOT / place).rglob("*.py"))]
    found += [Source(path) for path in ROOT.glob("*.py")]
    return [source for source in found if _KNOWS.search(source.text) and source.path != Path(__file__)]


def writes(source: Source) -> list[str]:
    """The calls that may write to a file; `open` with any mode but reading among them."""
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    named = [(node, getattr(node.func, "attr", getattr(node.func, "id", ""))) for node in calls]
    return [
        f"{source.name}:{node.lineno} {name}"
        for node, name in named
        if name in _WRITES or (name == "open" and any(_writing(one) for one in (*node.args, *_values(node))))
    ]


def _values(node: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in node.keywords if keyword.arg == "mode"]


def _writing(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and bool(re.fullmatch(r"[rbt+]*[wax+][bt+]*", node.value))
    )


def test_nothing_that_knows_of_them_writes_files() -> None:
    """No switch makes them anew from what an adapter sends: then they would hold nothing in place."""
    found = readers()
    assert {"tests/adapters/test_pinned.py", "tests/adapters/test_golden_statements.py"} <= {one.name for one in found}
    assert [call for source in found for call in writes(source)] == []


@pytest.mark.parametrize(
    "call", ["PATH.write_text(sql)", "open(PATH, 'w')", "PATH.open(mode='a')", "shutil.copy(a, PATH)"]
)
def test_a_switch_would_be_found(call: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    source = Source(ROOT / "tests" / "adapters" / "golden.py")
    source.__dict__.update(text=call, nodes=list(ast.walk(ast.parse(call))))
    assert len(writes(source)) == 1
