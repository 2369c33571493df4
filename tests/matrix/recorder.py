"""A plugin of pytest's: what became of each combination, written as JSON at the end of the run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.conformance.combinations import not_carried
from tests.servers.choice import CHOICE

PROPERTY = "combination"
_FOUND: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
_SKIPPED: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix-report", type=Path, required=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = getattr(item, "callspec").params  # noqa: B009  only functions have one
        names = (str(parameters["database"]), str(parameters.get("strategy", "")))
        item.user_properties.append((PROPERTY, list(names)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.passed:
        return
    target, strategy = dict(report.user_properties)[PROPERTY]
    _FOUND[target, strategy][report.outcome] += 1
    if report.skipped and isinstance(report.longrepr, tuple):
        server = target.rpartition("-")[0]
        _SKIPPED.add(f"{server}: {report.longrepr[2].removeprefix('Skipped: ')}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput"):
        return
    found = [[*names, counts] for names, counts in sorted(_FOUND.items())]
    skipped = sorted({*_SKIPPED, *not_carried(config.stash[CHOICE])})
    config.getoption("--matrix-report").write_text(json.dumps({"found": found, "skipped": skipped}), encoding="utf-8")
