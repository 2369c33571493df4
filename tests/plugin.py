"""Options of the test run: which servers, whether they must be there, whether a test may be skipped."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from tests.servers import PINNED, SERVERS, USUAL, Backend, Unavailable
from tests.servers.choice import CHOICE, Choice

SYNC_FIXTURES = {"engine", "url"}
ASYNC_FIXTURES = {"async_engine", "async_url"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sa_taskqueue")
    group.addoption(
        "--servers",
        metavar="NAMES",
        help=f"comma-separated: {', '.join(SERVERS)}, or all; a server named here is started if none is found "
        f"(default: those of {', '.join(USUAL)} that are found); {', '.join(PINNED)} run only where a URL names one",
    )
    group.addoption("--require-all-servers", action="store_true", help="a server that is absent ends the run at once")
    group.addoption("--every-combination", action="store_true", help="the conformance suite with every driver, too")
    group.addoption("--no-skips", action="store_true", help="a skipped test counts as failed")
    group.addoption("--seed", type=int, help="seed of each test's random numbers (default: from the test's name)")


def pytest_configure(config: pytest.Config) -> None:
    handed: str | None = getattr(config, "workerinput", {}).get("servers")
    config.stash[CHOICE] = Choice(**json.loads(handed)) if handed else _choose(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        for server in SERVERS.values():
            server.stop()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand what the controller found or started to each xdist worker."""
    node.workerinput["servers"] = json.dumps(vars(node.config.stash[CHOICE]))


def pytest_report_header(config: pytest.Config) -> list[str]:
    choice = config.stash[CHOICE]
    pinned = [name for name in PINNED if name not in choice.names]
    return [
        *(f"server {name}: {choice.urls.get(name) or choice.reasons[name]}" for name in choice.names),
        *(
            f"server {name}: not run, pinned by golden SQL (name one in SA_TASKQUEUE_TEST_{name.upper()}_URL)"
            for name in pinned
        ),
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" not in metafunc.fixturenames:
        return
    fixtures = set(metafunc.fixturenames)
    sync, use_async = bool(fixtures & SYNC_FIXTURES), bool(fixtures & ASYNC_FIXTURES)
    marker = metafunc.definition.get_closest_marker("servers")
    allowed = set(marker.args) if marker else set(SERVERS)
    every = metafunc.definition.get_closest_marker("every_driver") is not None
    backends = [
        backend
        for name in metafunc.config.stash[CHOICE].names
        if allowed & {name, SERVERS[name].dialect}
        for backend in _backends(name, sync=sync, use_async=use_async, every=every)
    ]
    ids = [backend.id(sync=sync, use_async=use_async) for backend in backends]
    # Without a backend the test stays as one item that is deselected below: an empty list would count as skipped.
    metafunc.parametrize("backend", backends or [None], ids=ids or ["none"], indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept: list[pytest.Item] = []
    without: list[pytest.Item] = []
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "backend" in callspec.params:
            item.add_marker("database")
            (kept if callspec.params["backend"] is not None else without).append(item)
        else:
            kept.append(item)
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped, and --no-skips is given: {reason}"
    return report


def _choose(config: pytest.Config) -> Choice:
    named: str | None = config.getoption("--servers")
    run = [name for name in SERVERS if name not in PINNED]
    named_by_url = [name for name in PINNED if SERVERS[name].named()]
    choice = Choice([*run, *named_by_url] if named == "all" else named.split(",") if named else [*USUAL, *named_by_url])
    unknown = set(choice.names) - set(SERVERS)
    if unknown:
        raise pytest.UsageError(f"--servers: no server is called {', '.join(sorted(unknown))}")
    if config.getoption("collectonly"):
        choice.reasons = dict.fromkeys(choice.names, "not looked for")
        return choice
    required = config.getoption("--require-all-servers")
    for name in choice.names:
        try:
            url = SERVERS[name].find(start=bool(named) or required)
            choice.urls[name] = url.render_as_string(hide_password=False)
        except Unavailable as reason:
            if required and name not in PINNED:
                raise pytest.UsageError(str(reason)) from None
            choice.reasons[name] = str(reason)
    return choice


def _backends(name: str, *, sync: bool, use_async: bool, every: bool) -> list[Backend]:
    """Each sync driver once and each async driver once, in as few runs as that takes."""
    server = SERVERS[name]
    drivers = server.drivers if every else server.drivers[:1]
    async_drivers = server.async_drivers if every else server.async_drivers[: server.usual_async]
    runs = max(len(drivers) if sync else 1, len(async_drivers) if use_async else 1)
    return [
        Backend(name, drivers[min(i, len(drivers) - 1)], async_drivers[min(i, len(async_drivers) - 1)])
        for i in range(runs)
    ]
