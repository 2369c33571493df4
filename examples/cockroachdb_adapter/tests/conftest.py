import os
from collections.abc import Iterator

import pytest

from sa_taskqueue.testing import Database
from sa_taskqueue.testing.fixtures import *  # noqa: F403

URL = os.environ.get("SA_TASKQUEUE_TEST_COCKROACHDB_URL", "cockroachdb+psycopg2://root@127.0.0.1:26257/defaultdb")


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    with Database(URL) as database:
        yield database
