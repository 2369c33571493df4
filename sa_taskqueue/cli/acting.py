"""Commands that change tasks."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import click

from sa_taskqueue.cli.base import Command, Output, controlled, duration, json_option, target_argument
from sa_taskqueue.control import Choice
from sa_taskqueue.states import TERMINAL, Status


def _choice_options(command: Command) -> Command:
    """Ids, or --all with what it is limited to."""
    command = click.option("--name", help="With --all: only tasks of this name.")(command)
    command = click.option("--queue", help="With --all: only this queue.")(command)
    command = click.option("--all", "every", is_flag=True, help="All that can be changed, instead of ids.")(command)
    return click.argument("ids", nargs=-1, type=click.UUID)(command)


def _choice(ids: tuple[UUID, ...], every: bool, queue: str | None, name: str | None) -> Choice:
    if bool(ids) == every:
        raise click.UsageError("name the tasks by ID, or give --all")
    if ids and (queue or name):
        raise click.UsageError("--queue and --name limit --all; they do not go with ids")
    return Choice(ids=ids or None, queue=queue, name=name)


def _left(ids: tuple[UUID, ...], dealt_with: int, needed: str) -> str:
    """What is said of ids at which nothing was done."""
    count = len(set(ids)) - dealt_with
    return f"; left: {count} of no task, or of one that is not {needed}" if count > 0 else ""


@click.command()
@target_argument
@_choice_options
@json_option
def retry(
    target: str,
    url: str | None,
    ids: tuple[UUID, ...],
    every: bool,
    queue: str | None,
    name: str | None,
    output: Output,
) -> None:
    """Run FAILED and CANCELLED tasks again, with attempts and crashes counted from 0."""
    choice = _choice(ids, every, queue, name)
    retried = controlled(target, url, lambda control: control.retry(choice))
    text = (
        f"{len(retried.ids)} to run again{_left(ids, len(retried.ids) + len(retried.conflicts), 'FAILED or CANCELLED')}"
    )
    if retried.conflicts:
        text += f"; left, because another task holds the unique key: {', '.join(map(str, retried.conflicts))}"
    output.show({"retried": len(retried.ids), "conflicts": retried.conflicts}, text)


@click.command()
@target_argument
@_choice_options
@click.option("--running", is_flag=True, help="Also tasks that run: their worker cannot finish them any more.")
@json_option
def cancel(
    target: str,
    url: str | None,
    ids: tuple[UUID, ...],
    every: bool,
    queue: str | None,
    name: str | None,
    running: bool,
    output: Output,
) -> None:
    """Cancel tasks that wait."""
    choice = _choice(ids, every, queue, name)
    cancelled = controlled(target, url, lambda control: control.cancel(choice, running=running))
    output.show({"cancelled": len(cancelled)}, f"{len(cancelled)} cancelled{_left(ids, len(cancelled), 'waiting')}")


@click.command()
@target_argument
@click.option(
    "--status",
    "statuses",
    type=click.Choice(sorted(TERMINAL), case_sensitive=False),
    multiple=True,
    help="Only these; by default each ended status.",
)
@click.option("--older-than", type=duration, metavar="DURATION", help="Instead of the retention of TARGET.")
@json_option
def prune(
    target: str, url: str | None, statuses: tuple[Status, ...], older_than: timedelta | None, output: Output
) -> None:
    """Delete ended tasks, and what the inbox keeps, that are older than their retention; workers do this too."""
    count = controlled(target, url, lambda control: control.prune(statuses, older_than=older_than))
    output.show({"deleted": count}, f"{count} deleted")
