"""Finds the user's TaskQueue and engine: `app:queue`, `--url`."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from sa_taskqueue.queue import TaskQueue
from sa_taskqueue.session import prepare_sqlite

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


EXTRAS = {
    "aiosqlite": "sqlite-async",
    "asyncmy": "mysql-async",
    "asyncpg": "asyncpg",
    "mariadb": "mysql",
    "mysql": "mysql",
    "mysqldb": "mysql",
    "postgresql": "postgresql",
    "psycopg": "postgresql",
    "pymysql": "pymysql",
}
"""The extra of this package that installs each driver, and the usual driver of a URL that names none."""


@dataclass(frozen=True)
class Target:
    """The queue named on the command line, and where its database is."""

    queue: TaskQueue
    module: ModuleType
    url: str | None

    def engine(self) -> Engine | AsyncEngine:
        """The engine of --url, else that of the module; click.UsageError if there is neither."""
        if self.url:
            return engine_for(self.url)
        engine: Any = getattr(self.module, "engine", None)
        if not isinstance(getattr(engine, "sync_engine", engine), Engine):
            raise click.UsageError(
                f"{self.module.__name__} has no `engine`: give --url, set SA_TASKQUEUE_URL, or make one there"
            )
        return engine  # type: ignore[no-any-return]


def load(target: str, url: str | None) -> Target:
    """Import `module:attribute` with the current folder on the path; click.UsageError says what is wrong with it."""
    name, colon, attribute = target.partition(":")
    if not (name and colon and attribute):
        raise click.UsageError(f"TARGET is {target!r}, but must be module:attribute, such as app:queue")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if "/" in name or "\\" in name or name.startswith(".") or name.endswith(".py"):
        raise click.UsageError(f"TARGET is {target!r}: name a module as in an import, not a file, such as app:queue")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        hint = "; go to its folder or set PYTHONPATH" if error.name == name.partition(".")[0] else ""
        raise click.UsageError(f"{name} cannot be imported: {error}{hint}") from error
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, TaskQueue):
        raise click.UsageError(f"{target} is no TaskQueue{_near(module)}")
    return Target(found, module, url)


def engine_for(url: str) -> Engine | AsyncEngine:
    """An Engine, or an AsyncEngine where the URL's driver is async; click.UsageError for a URL that cannot be used."""
    try:
        parsed = make_url(url)
        if parsed.get_dialect().is_async:
            from sqlalchemy.ext.asyncio import create_async_engine

            engine: Engine | AsyncEngine = create_async_engine(parsed)
        else:
            engine = create_engine(parsed)
    except (ArgumentError, NoSuchModuleError) as error:
        example = "postgresql+psycopg://user@host/database"
        raise click.UsageError(f"the URL cannot be used: {error}; write it as {example}") from error
    except ImportError as error:
        raise click.UsageError(f"the URL's driver is not installed: {error}; {_extra(url)}") from error
    if isinstance(engine.dialect, SQLiteDialect):
        prepare_sqlite(engine)
    return engine


def _extra(url: str) -> str:
    """How to install the driver that the URL names."""
    scheme = url.partition(":")[0]
    extra = EXTRAS.get(scheme.partition("+")[2] or scheme)
    if extra is None:
        return f"install the driver of {scheme}"
    return f'pip install "sa-taskqueue[{extra}]"'


def _near(module: ModuleType) -> str:
    """Names what the module has instead."""
    queues = [f"{module.__name__}:{name}" for name, value in vars(module).items() if isinstance(value, TaskQueue)]
    return f"; there is {', '.join(queues)}" if queues else ""
