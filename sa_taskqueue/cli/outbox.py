"""The commands `sa-taskqueue outbox ...`: look at messages, send them again."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from sa_taskqueue.cli.base import Commands, Output, duration, json_option, table, target_argument
from sa_taskqueue.cli.loading import load
from sa_taskqueue.cli.looking import ago, summary
from sa_taskqueue.control import OutboxControl
from sa_taskqueue.states import KeyStatus, MessageStatus

T = TypeVar("T")


@click.group(cls=Commands)
def outbox() -> None:
    """Look at the messages of an outbox, and send them again."""


@outbox.command()
@target_argument
@json_option
def status(target: str, url: str | None, output: Output) -> None:
    """Count messages and keys by status."""
    found = _controlled(target, url, lambda control: control.statistics())
    messages = table(
        ["", *(one.value.lower() for one in MessageStatus), "oldest due"],
        [["messages", *(found.messages.get(one, 0) for one in MessageStatus), ago(found.oldest_message)]],
    )
    keys = table(
        ["", *(one.value.lower() for one in KeyStatus), "oldest due"],
        [["keys", *(found.keys.get(one, 0) for one in KeyStatus), ago(found.oldest_key)]],
    )
    output.show(found._asdict(), f"{messages}\n{keys}")


@outbox.command()
@target_argument
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@json_option
def blocked(target: str, url: str | None, limit: int, output: Output) -> None:
    """List the keys that a message holds back until someone acts."""
    found = _controlled(target, url, lambda control: control.blocked(limit))
    rows = [
        [each.key, each.seq, each.message_id, each.topic, each.waiting, each.fails, summary(each.error)]
        for each in found
    ]
    header = ["key", "number", "message", "topic", "waiting", "tries", "error"]
    output.show({"keys": [each._asdict() for each in found]}, table(header, rows) if rows else "no key is blocked")


@outbox.command()
@target_argument
@click.option("--since", type=duration, metavar="DURATION", help="Only what was sent in the last DURATION.")
@click.option("--topic", help="Only these topics; * stands for any characters.")
@click.option("--key", help="Only this key.")
@click.option("--all", "every", is_flag=True, help="Everything that is kept.")
@json_option
def replay(
    target: str,
    url: str | None,
    since: dt.timedelta | None,
    topic: str | None,
    key: str | None,
    every: bool,
    output: Output,
) -> None:
    """Send again what was sent and is kept, under the same ids and numbers."""
    limited = since is not None or topic is not None or key is not None
    if limited == every:
        raise click.UsageError("give --since, --topic or --key, or else --all")
    count = _controlled(target, url, lambda control: control.replay(since=since, topic=topic, key=key))
    output.show({"replayed": count}, f"{count} to send again")


@outbox.command()
@target_argument
@click.option("--topic", help="Only FAILED messages of these topics; * stands for any characters.")
@click.option("--key", help="Only this key.")
@click.option("--blocked-only", is_flag=True, help="Only blocked keys, no FAILED messages.")
@json_option
def redrive(
    target: str, url: str | None, topic: str | None, key: str | None, blocked_only: bool, output: Output
) -> None:
    """Free blocked keys, and send FAILED messages after all."""
    count = _controlled(target, url, lambda control: control.redrive(topic=topic, key=key, failed=not blocked_only))
    output.show({"redriven": count}, f"{count} keys and messages are free again")


def _controlled(target: str, url: str | None, action: Callable[[OutboxControl], Awaitable[T]]) -> T:
    loaded = load(target, url)

    async def run() -> T:
        async with OutboxControl(loaded.queue, loaded.engine()) as control:
            return await action(control)

    return asyncio.run(run())
