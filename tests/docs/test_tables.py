from __future__ import annotations

import re
from pathlib import Path

import pytest

from sa_taskqueue import exceptions
from tests.docs import tables
from tests.docs.pages import DOCS, name, pages

MARKED = [page for page in pages() if tables.marked(page)]


@pytest.mark.parametrize("page", MARKED, ids=name)
def test_generated_parts_are_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.filled(text) == text, "run: python -m tests.docs.tables"


def test_each_generated_part_is_shown_somewhere() -> None:
    assert {name for page in MARKED for name in tables.marked(page)} == set(tables.TABLES)


def test_each_error_has_a_code_of_its_own_and_a_paragraph() -> None:
    """The generated table says what is wrong; the paragraph under the code's heading says more where it helps."""
    kinds = [kind for kind in vars(exceptions).values() if isinstance(kind, type)]
    codes = [kind.code for kind in kinds if issubclass(kind, exceptions.TaskQueueError)]
    assert len(codes) == len(set(codes))
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    assert [code for code in codes if f"`{code}`" not in page] == []


def test_relative_links_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)")
    broken = [
        f"{name(page)}: {target}"
        for page in pages()
        for target in link.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken
