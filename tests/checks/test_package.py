"""What users get: the public names, what an import costs, what is in the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sa_taskqueue
from tests.checks.source import PACKAGE, ROOT


def test_the_public_names_are_alphabetical_and_exist() -> None:
    names = sa_taskqueue.__all__
    assert list(names) == sorted(names, key=lambda name: (name.lower(), name))
    assert [name for name in names if not hasattr(sa_taskqueue, name)] == []


def test_importing_the_package_imports_nothing_optional() -> None:
    """No driver, no asyncio extension (it needs greenlet), no optional library, and no warning."""
    code = "import sys, sa_taskqueue; print(*sorted(sys.modules), sep='\\n')"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    imported = set(done.stdout.split())
    drivers = {"psycopg", "asyncpg", "MySQLdb", "asyncmy", "aiosqlite"}
    optional = drivers | {"sqlalchemy.ext.asyncio", "alembic", "msgspec", "pydantic", "click"}
    clients = {"aio_pika", "celery", "confluent_kafka", "dramatiq", "httpx", "nats", "redis"}
    assert imported & (optional | clients) == set()


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
        (licence,) = [name for name in archive.namelist() if name.endswith("/LICENSE")]
        assert b"MIT" in archive.read(licence)
    source = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert files == {path.relative_to(ROOT).as_posix() for path in source}
    assert "sa_taskqueue/py.typed" in files
