"""The built-in adapters and strategies enter through the door of everybody else: a fixture `database`."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
from sqlalchemy import URL

from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.testing import Database, Strategy
from sa_taskqueue.testing.fixtures import *  # noqa: F403  as the guide tells it
from tests.conformance.combinations import Target, strategies, targets
from tests.conftest import Databases
from tests.servers import SERVERS
from tests.servers.choice import CHOICE


@pytest.fixture(scope="session")
def database(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    target: Target = request.param
    if target.server == "sqlite":
        url = URL.create("sqlite+pysqlite", database=str(tmp_path_factory.mktemp("suite") / "suite.db"))
    else:
        url = databases.url(target.server)
    with Database(SERVERS[target.server].url(url, target.driver), create=target.engine) as database:
        yield database


@pytest.fixture(scope="session")
def strategy(request: pytest.FixtureRequest) -> Strategy:
    name: str = request.param
    return Strategy(name, STRATEGIES[name])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Only the strategies that an adapter carries; the matrix names the others."""
    if "database" not in metafunc.fixturenames:
        return
    choice = metafunc.config.stash[CHOICE]
    found = [
        target
        for server in choice.names
        for target in targets(server, every=metafunc.config.getoption("--every-combination"))
    ]
    if "strategy" not in metafunc.fixturenames:
        metafunc.parametrize("database", found, ids=str, indirect=True)
        return
    carried = functools.cache(lambda target: strategies(target, choice))
    pairs = [(target, name) for target in found for name in carried(target)]
    ids = [f"{target}-{name}" for target, name in pairs]
    metafunc.parametrize(("database", "strategy"), pairs, ids=ids, indirect=True)
