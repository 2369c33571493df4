"""Sessions for development: `nox -l` lists them, `nox` runs tests, lint and types."""

from __future__ import annotations

import shutil
import subprocess
import sys

import nox

nox.needs_version = ">=2025.2"
nox.options.sessions = ["tests", "lint", "types"]
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

PROJECT = nox.project.load_toml("pyproject.toml")
#: The floor, the newest 2.0 and the newest 2.1.
SQLALCHEMY = {"floor": "sqlalchemy==2.0.40", "2.0": "sqlalchemy>=2.0.40,<2.1", "2.1": "sqlalchemy>=2.1,<2.2"}
NEWEST = "2.1"
#: What is absent or skipped fails.
NOTHING_LEFT_OUT = ("--require-all-servers", "--no-skips")
CHECKED = ["sa_taskqueue", "tests", "benchmarks", "examples", "noxfile.py", "docs/conf.py"]


def _present(*versions: str) -> list[str]:
    """The Python versions that this machine really has: a version manager's shim may exist for one it lacks."""

    def works(version: str) -> bool:
        program = shutil.which(f"python{version}")
        if program is None:
            return False
        return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0

    return [version for version in versions if works(version)] or [f"{sys.version_info[0]}.{sys.version_info[1]}"]


PYTHONS = _present("3.11", "3.12", "3.13", "3.14")


def _groups(*names: str) -> list[str]:
    return list(dict.fromkeys(nox.project.dependency_groups(PROJECT, *names)))


@nox.session(python=PYTHONS)
@nox.parametrize("sqlalchemy", list(SQLALCHEMY), ids=list(SQLALCHEMY))
def tests(session: nox.Session, sqlalchemy: str) -> None:
    """The tests on the servers found here; arguments go to pytest."""
    session.install("-e", ".", SQLALCHEMY[sqlalchemy], *_groups("test", "servers"))
    session.run("pytest", "-n", "3", *session.posargs)


@nox.session(python=PYTHONS[0])
def matrix(session: nox.Session) -> None:
    """The conformance suite over every strategy, server and driver: `nox -s matrix -- --json`."""
    session.install("-e", ".", *_groups("test", "servers"))
    session.run("python", "-m", "tests.matrix", *session.posargs)


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Style, formatting and the layers."""
    session.install("-e", ".", *_groups("lint"))
    session.run("ruff", "check", *CHECKED)
    session.run("ruff", "format", "--check", *CHECKED)
    session.run("lint-imports")


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    """mypy and pyright on the package and on samples of its API, against SQLAlchemy 2.1."""
    session.install("-e", ".[all]", SQLALCHEMY["2.1"], *_groups("types"))
    session.run("mypy", "sa_taskqueue", "tests/types")
    session.run("pyright")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """The documentation into docs/_build; each warning is an error."""
    session.install("-e", ".[all]", *_groups("docs"))
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html")


@nox.session(python=PYTHONS[0])
def bench(session: nox.Session) -> None:
    """A benchmark: `nox -s bench -- drain --url postgresql+psycopg://...`."""
    session.install("-e", ".", *_groups("servers"))
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(python=PYTHONS[0])
def build(session: nox.Session) -> None:
    """Source distribution and wheel into dist/; the wheel is installed alone and asked for its version."""
    session.install("build")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build")
    session.install("--force-reinstall", "dist/" + next(iter(_built("*.whl"))))
    session.run("sa-taskqueue", "version")


@nox.session(python=PYTHONS[0])
@nox.parametrize("sqlalchemy", list(SQLALCHEMY), ids=list(SQLALCHEMY))
def nightly(session: nox.Session, sqlalchemy: str) -> None:
    """Everything on every server with nothing skipped; on the newest SQLAlchemy also the long chaos and size runs."""
    session.install("-e", ".", SQLALCHEMY[sqlalchemy], *_groups("test", "servers"))
    long_runs = {"SA_TASKQUEUE_TEST_LONG": "1"} if sqlalchemy == NEWEST else {}
    # The conformance suite skips what a database lacks: the matrix knows why.
    everything = ("--servers=all", *NOTHING_LEFT_OUT, "--ignore=tests/conformance")
    session.run("pytest", "-n", "3", *everything, *session.posargs, env=long_runs)
    session.run("python", "-m", "tests.matrix")
    if sqlalchemy == NEWEST and PYTHONS[1:]:
        session.notify("nightly_pythons")


@nox.session(python=PYTHONS[1:], default=False)
def nightly_pythons(session: nox.Session) -> None:
    """The quick tests on the other Python versions; `nightly` adds them to its run."""
    session.install("-e", ".", SQLALCHEMY[NEWEST], *_groups("test", "servers"))
    chosen = ("--servers=sqlite,postgresql", "-m", "not slow", "--ignore=tests/conformance")
    session.run("pytest", "-n", "3", *chosen, *NOTHING_LEFT_OUT, *session.posargs)


def _built(pattern: str) -> list[str]:
    from pathlib import Path

    return [path.name for path in Path("dist").glob(pattern)]
