from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click

from sa_taskqueue.cli.base import table
from sa_taskqueue.demo.show import DemoFailed, Outcome, Progress, Show

PLAIN_SECONDS = 1.0
"""Without a terminal the progress is a line of its own, at most so often."""


class ProgressLine:
    """One line that is written over again on a terminal; a note ends it and stands on a line of its own."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        line = (
            f"enqueued {progress.enqueued:4}   completed {progress.completed:4}   "
            f"running {progress.running:3}   workers {progress.workers}"
        )
        now = time.monotonic()
        if self._live:
            click.echo(f"\r{line}", nl=bool(progress.note))
        elif progress.note or now - self._last >= PLAIN_SECONDS:
            self._last = now
            click.echo(line)
        if progress.note:
            click.echo(f"  {progress.note}")

    def end(self) -> None:
        """Leave the line as it stands."""
        if self._live:
            click.echo()


@click.command()
@click.option("--orders", type=click.IntRange(30, 5_000), default=120, show_default=True, help="Orders to work off.")
def demo(orders: int) -> None:
    """See the main job on SQLite: orders, tasks, two workers, one of them killed midway.

    It works in a temporary folder, takes a few seconds, and ends with exit code 1 if a task was lost or an effect
    written twice.
    """
    line = ProgressLine()
    with tempfile.TemporaryDirectory(prefix="sa-taskqueue-demo-") as folder:
        try:
            outcome = Show(Path(folder), orders=orders, watch=line).play()
        except DemoFailed as error:
            raise click.ClickException(str(error)) from error
        finally:
            line.end()
    click.echo(closing_table(outcome))
    if outcome.lost or outcome.effects_twice or outcome.completed != outcome.enqueued:
        raise click.ClickException("the counts above must not differ like that: please report it")


def closing_table(outcome: Outcome) -> str:
    """What was promised, counted."""
    rows = [[outcome.enqueued, outcome.completed, outcome.lost, outcome.effects_twice]]
    closing = (
        f"{outcome.held_by_killed} task(s) of the killed worker were taken over; {outcome.seconds:.1f} seconds in all"
    )
    return table(["enqueued", "completed", "lost", "effects twice"], rows) + "\n" + closing
