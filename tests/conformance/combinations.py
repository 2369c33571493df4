"""Which databases the conformance suite runs on here: each driver of each server, some servers also as old ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.pool import NullPool

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.reservation import STRATEGIES
from tests.servers import PINNED, SERVERS
from tests.servers.choice import Choice
from tests.sqlite import sqlite_engine

#: The oldest SQLite, and the last versions of the others without SKIP LOCKED, which get the portable statements.
OLD = {"sqlite": (3, 8, 3), "postgresql": (9, 4), "mysql": (5, 7, 44), "mariadb": (10, 5, 29)}

#: The same dialect again: one sync and one async driver of it will do.
AGAIN = ("postgresql18",)


class Target(NamedTuple):
    """A server through one driver; `version` is what it is made to say of itself."""

    server: str
    driver: str
    version: tuple[int, ...] | None = None

    def __str__(self) -> str:
        said = f"-as-{'.'.join(map(str, self.version))}" if self.version else ""
        return f"{self.server}{said}-{self.driver}"

    def engine(self, url: URL) -> Any:
        """An Engine, or an AsyncEngine where the driver is async."""
        engine = _engine(url)
        if self.version is not None:
            pass_for(getattr(engine, "sync_engine", engine).dialect, self.version)
        return engine


def pass_for(dialect: Any, version: tuple[int, ...]) -> None:
    """Let the server that the dialect meets be of this version."""
    ask = dialect._get_server_version_info

    def answer(connection: Any) -> tuple[int, ...]:
        ask(connection)  # it also finds out whether it is MariaDB
        return version

    dialect._get_server_version_info = answer


def targets(server: str, *, every: bool) -> Iterator[Target]:
    """All that the suite runs on in one server; without `every` only what a plain run of the tests takes."""
    found = SERVERS[server]
    drivers = (*found.drivers, *found.async_drivers)
    if not every:
        drivers = drivers[:1]
    elif server in AGAIN:
        drivers = (found.drivers[0], found.async_drivers[-1])
    for driver in drivers:
        yield Target(server, driver)
    if every and server in OLD:
        for driver in (found.drivers[0], found.async_drivers[-1]):
            yield Target(server, driver, OLD[server])


def strategies(target: Target, choice: Choice) -> list[str]:
    """The strategies that the target's adapter carries; all of them, to be skipped, where the server is not there."""
    admin = choice.urls.get(target.server)
    if admin is None:
        return list(STRATEGIES)
    url = make_url(admin)
    if target.server == "sqlite":
        url = url.set(database=":memory:")
    engine = create_engine(url, poolclass=NullPool)
    if target.version is not None:
        pass_for(engine.dialect, target.version)
    with engine.connect() as connection:
        carried = adapter_for(connection.dialect).reservations
    return [name for name in STRATEGIES if name in carried]


def not_carried(choice: Choice) -> list[str]:
    """Why the other combinations are not run, a line for each strategy on each server."""
    lines = []
    for server in choice.names:
        for version in (None, *([OLD[server]] if server in OLD else [])):
            target = Target(server, SERVERS[server].drivers[0], version)
            carried = strategies(target, choice)
            name = str(target).removesuffix(f"-{target.driver}")
            lines += [f"{name}: does not carry {strategy}" for strategy in STRATEGIES if strategy not in carried]
    lines += [f"{name}: golden SQL only" for name in PINNED if name not in choice.names]
    return lines


def _engine(url: URL) -> Any:
    dialect = url.get_dialect()
    if dialect.name == "sqlite":
        return sqlite_engine(url)
    if not dialect.is_async:
        return create_engine(url)
    from sqlalchemy.ext.asyncio import create_async_engine

    return create_async_engine(url)
