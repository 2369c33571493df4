"""Each Python snippet of the documentation runs, and so do the commands of the tutorial.

The snippets of a page run one after the other as one module, in an empty folder; a snippet whose first line is
`# NAME.py` becomes that file, which later ones import. Pages that build on the tutorial's classes get them from
`preludes`.
"""

from __future__ import annotations

import linecache
import os
import shlex
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tests.checks.source import ROOT
from tests.docs.pages import Snippet, name, pages, snippets
from tests.docs.preludes import prelude

PYTHON = [page for page in pages() if snippets(page, "python")]


@pytest.mark.parametrize("page", PYTHON, ids=name)
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if 'create_engine("postgresql+psycopg:' in page.read_text(encoding="utf-8"):
        pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = types.ModuleType("snippets")
    monkeypatch.setitem(sys.modules, "snippets", module)
    namespace = vars(module)
    namespace.update(prelude(name(page)))
    try:
        for snippet in snippets(page, "python", "sh"):
            if snippet.language == "python":
                _run(snippet, name(page), namespace)
            elif page.name == "tutorial.md":
                _run_commands(snippet)
    finally:
        for engine in [value for value in namespace.values() if hasattr(value, "dispose")]:
            getattr(engine, "sync_engine", engine).dispose()
        sys.modules.pop("app", None)


def _run(snippet: Snippet, page: str, namespace: dict[str, Any]) -> None:
    first = snippet.text.partition("\n")[0]
    if first.startswith("# ") and first.endswith(".py"):
        Path(first[2:]).write_text(snippet.text, encoding="utf-8")
        return
    # With its place in the page, so that a failure's traceback shows the line, and inspect finds the source.
    where = f"{page}:{snippet.line}"
    linecache.cache[where] = (len(snippet.text), None, snippet.text.splitlines(keepends=True), where)
    exec(compile(snippet.text, where, "exec"), namespace)


def _run_commands(snippet: Snippet) -> None:
    for line in snippet.text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "sa-taskqueue", f"a command of the tutorial that the tests cannot run: {line}"
        command = [sys.executable, "-m", "sa_taskqueue", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
