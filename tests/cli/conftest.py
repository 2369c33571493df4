from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sa_taskqueue.cli import main

APP = """
from sqlalchemy import MetaData
from sqlalchemy.orm import DeclarativeBase

from sa_taskqueue import Fail, QueueMixin, TaskQueue, TaskSession, sqlite_engine

class Base(DeclarativeBase): ...

class Task(QueueMixin, Base):
    __tablename__ = "task"

queue = TaskQueue(Task)
other = "no queue"

@queue.task(queue="mail")
def send(to: str) -> None:
    if to == "nobody":
        raise Fail("no such address")
    print(f"sent to {to}")

@queue.task
def tidy() -> None: ...
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module `cli_app` with a TaskQueue and no engine, in the current folder."""
    (tmp_path / "cli_app.py").write_text(textwrap.dedent(APP), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SA_TASKQUEUE_URL", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("cli_app", None)


class Shell:
    """Runs `sa-taskqueue` in this process."""

    def run(self, *arguments: str, **options: Any) -> Result:
        result = CliRunner().invoke(main, list(arguments), **options)
        unexpected = result.exception is not None and not isinstance(result.exception, SystemExit)
        if unexpected and result.exc_info is not None:
            raise result.exc_info[1]
        return result

    def ok(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.output


@pytest.fixture
def shell() -> Shell:
    return Shell()
