"""The fixtures of the conformance suite, for a conftest: `from sa_taskqueue.testing.fixtures import *`.

The conftest adds the fixture `database`, of session scope, which gives a `Database` that has its tables. It may
override `strategy`, to test a strategy of its own, and `requirements`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("sa_taskqueue.testing.suite")

from sa_taskqueue.reservation import STRATEGIES  # noqa: E402  what they import is not to be rewritten too late
from sa_taskqueue.testing.database import Database  # noqa: E402
from sa_taskqueue.testing.requirements import Requirements  # noqa: E402
from sa_taskqueue.testing.trial import Strategy, Trial  # noqa: E402

__all__ = [
    "db",
    "empty",
    "requirements",
    "requires_concurrent_writers",
    "requires_row_locks",
    "requires_skip_locked",
    "strategy",
    "trial",
]


@pytest.fixture(scope="session", params=list(STRATEGIES))
def strategy(request: pytest.FixtureRequest, database: Database) -> Strategy:
    """Each strategy that the adapter names in its flag `reservations`."""
    name: str = request.param
    if name not in database.adapter.reservations:
        pytest.skip(f"{database.adapter.name} does not carry {name}")
    return Strategy(name, STRATEGIES[name])


@pytest.fixture
def requirements(database: Database) -> Requirements:
    """What the database offers; skips the tests that need more."""
    return Requirements(database.adapter)


@pytest.fixture
def empty(database: Database) -> Database:
    """The database without rows."""
    database.empty()
    return database


@pytest.fixture
def db(empty: Database) -> Iterator[Trial]:
    """For a test in which it does not matter how tasks are held: workers use `Lease`."""
    trial = Trial(empty)
    yield trial
    trial.close()


@pytest.fixture
def trial(empty: Database, strategy: Strategy) -> Iterator[Trial]:
    """For a test of how tasks are held: workers and holders use the strategy."""
    trial = Trial(empty, strategy)
    yield trial
    trial.close()


@pytest.fixture
def requires_skip_locked(requirements: Requirements) -> None:
    """Skip without SKIP LOCKED."""
    _need(requirements.skip_locked)


@pytest.fixture
def requires_row_locks(requirements: Requirements) -> None:
    """Skip where no rows can be locked."""
    _need(requirements.row_locks)


@pytest.fixture
def requires_concurrent_writers(requirements: Requirements) -> None:
    """Skip where one writer excludes all others."""
    _need(requirements.concurrent_writers)


def _need(missing: str | None) -> None:
    if missing is not None:
        pytest.skip(missing)
