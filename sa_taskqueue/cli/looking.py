"""Commands that change nothing."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed_version

import click
import sqlalchemy

from sa_taskqueue.cli.base import Output, controlled, json_option, table, target_argument
from sa_taskqueue.control import Choice
from sa_taskqueue.states import Status

LONGEST_ERROR = 100
"""Characters of an error shown in a list."""


@click.command()
@target_argument
@json_option
def status(target: str, url: str | None, output: Output) -> None:
    """Count the tasks of each queue by status."""
    queues = controlled(target, url, lambda control: control.statistics())
    header = ["queue", *(each.value.lower() for each in Status), "oldest due", "lease ended"]
    rows = [
        [each.queue, *(each.counts.get(one, 0) for one in Status), ago(each.oldest_due), ago(each.oldest_expired)]
        for each in queues
    ]
    output.show({"queues": [each._asdict() for each in queues]}, table(header, rows) if rows else "no tasks")


@click.command("list")
@target_argument
@click.option(
    "--status", "statuses", type=click.Choice(list(Status), case_sensitive=False), multiple=True, help="Only these."
)
@click.option("--queue", help="Only this queue.")
@click.option("--name", help="Only tasks of this name.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@json_option
def list_tasks(
    target: str,
    url: str | None,
    statuses: tuple[Status, ...],
    queue: str | None,
    name: str | None,
    limit: int,
    output: Output,
) -> None:
    """List tasks, the newest first."""
    tasks = controlled(
        target, url, lambda control: control.list_tasks(Choice(queue=queue, name=name), statuses=statuses, limit=limit)
    )
    rows = [
        [
            each.id,
            each.queue,
            each.name,
            each.status,
            each.attempt,
            each.crashes,
            each.scheduled_at,
            summary(each.error),
        ]
        for each in tasks
    ]
    header = ["id", "queue", "name", "status", "attempt", "crashes", "scheduled at", "error"]
    output.show({"tasks": [each._asdict() for each in tasks]}, table(header, rows) if rows else "no tasks")


@click.command()
@target_argument
@json_option
def check(target: str, url: str | None, output: Output) -> None:
    """Compare the database with the model: exit code 1 if a table or column is missing."""
    found = controlled(target, url, lambda control: control.check())
    output.show(
        {"ok": True, **found._asdict()},
        f"{found.table} on {found.database} is as the model says (adapter: {found.adapter})",
    )


@click.command()
@json_option
def version(output: Output) -> None:
    """Print the versions of the package, SQLAlchemy and Python."""
    versions = {
        "sa-taskqueue": installed_version("sa-taskqueue"),
        "sqlalchemy": sqlalchemy.__version__,
        "python": platform.python_version(),
    }
    output.show(versions, "\n".join(f"{name} {number}" for name, number in versions.items()))


def summary(error: str | None) -> str:
    """Code or exception, and first line of the error in the row, which is JSON with the whole traceback."""
    if error is None:
        return ""
    try:
        told = json.loads(error)
        kind = told.get("type") if told["code"] == "error" else None  # what was raised says more than "error"
        text = f"{kind or told['code']}: {told['message']}"
    except (ValueError, LookupError, TypeError):  # written by another program
        text = error
    line = text.partition("\n")[0]
    return line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 3]}..."


def ago(seconds: float | None) -> str:
    """Whole seconds, for people."""
    return "" if seconds is None else f"{seconds:.0f} s ago"
