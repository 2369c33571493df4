"""The example for CockroachDB as users get it: a wheel, installed into a virtual environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.adapters.scenario import EXAMPLE
from tests.checks.source import ROOT

ASK = """
import json
from sqlalchemy.dialects.postgresql.base import PGDialect
from sa_taskqueue.adapters.registry import adapter_for

dialect = PGDialect()
dialect.name = "cockroachdb"
dialect.server_version_info = (24, 1)
adapter = adapter_for(dialect)
print(json.dumps([type(adapter).__module__, type(adapter).__name__, adapter.worker_isolation]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_its_adapter_is_found_once_its_wheel_is_installed(tmp_path: Path) -> None:
    environment, wheels = tmp_path / "environment", tmp_path / "wheels"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    # Everything else comes from here, as a path: no index is asked, and nothing of the example is in it.
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    Path(site, "here.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")

    before = json.loads(run(python, "-c", ASK, cwd=tmp_path))
    assert before == ["sa_taskqueue.adapters.base", "Adapter", "READ COMMITTED"], "nobody has registered it yet"

    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(
        *pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", wheels, EXAMPLE, cwd=tmp_path
    )
    [wheel] = wheels.glob("*.whl")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)

    assert json.loads(run(python, "-c", ASK, cwd=tmp_path)) == [
        "sa_taskqueue_cockroachdb",
        "CockroachDB",
        "SERIALIZABLE",
    ]
