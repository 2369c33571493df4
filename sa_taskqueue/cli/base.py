"""What all commands share: the target, the engine's URL, JSON output, errors as one sentence."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import click

from sa_taskqueue.cli.loading import Target, load
from sa_taskqueue.control import Control
from sa_taskqueue.exceptions import TaskQueueError

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_JSON_ASKED = f"{__name__}.json"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Commands(click.Group):
    """A group whose commands end with one sentence and exit code 1 on an error of the library, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TaskQueueError as error:
            if ctx.meta.get(_JSON_ASKED):
                click.echo(json.dumps({"error": {"code": error.code, "message": str(error)}}))
            click.echo(f"Error: {error}", err=True)
            ctx.exit(1)


def duration(text: str) -> timedelta:
    """Seconds, or a number with a unit: 45s, 30m, 12h, 7d."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no duration; write 45s, 30m, 12h or 7d")
    return timedelta(seconds=float(found[1]) * _UNITS[found[2] or "s"])


@dataclass(frozen=True)
class Output:
    """Prints for people, or one JSON object for programs."""

    as_json: bool

    def show(self, data: dict[str, Any], text: str) -> None:
        click.echo(json.dumps(data, default=str) if self.as_json else text)


def table(header: list[str], rows: list[list[Any]]) -> str:
    """Columns as wide as their widest cell."""
    cells = [header, *([("" if cell is None else printable(str(cell))) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text with escapes for what a terminal would obey instead of showing it."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def target_argument(command: Command) -> Command:
    """The argument TARGET and the option --url, handed to the command as `target`."""
    url = click.option("--url", envvar="SA_TASKQUEUE_URL", show_envvar=True, help="SQLAlchemy URL of the database.")
    argument = click.argument("target", metavar="TARGET")
    return argument(url(command))


def json_option(command: Command) -> Command:
    """The option --json, handed to the command as `output`."""

    def chosen(ctx: click.Context, _param: click.Parameter, as_json: bool) -> Output:
        # All contexts of one call share `meta`: the group finds it here when a command fails.
        ctx.meta[_JSON_ASKED] = as_json
        return Output(as_json)

    return click.option("--json", "output", is_flag=True, callback=chosen, help="Print one JSON object.")(command)


def controlled(target: str, url: str | None, action: Callable[[Control], Awaitable[T]]) -> T:
    """Load the target, open the control over its database, and run `action` on it."""
    loaded: Target = load(target, url)

    async def run() -> T:
        async with Control(loaded.queue, loaded.engine()) as control:
            return await action(control)

    return asyncio.run(run())
