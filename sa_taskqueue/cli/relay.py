"""The command `sa-taskqueue relay`."""

from __future__ import annotations

import logging
import sys
from datetime import timedelta
from typing import Any

import click

from sa_taskqueue.cli.base import duration, target_argument
from sa_taskqueue.cli.loading import load
from sa_taskqueue.relay import Relay


def destination(text: str) -> tuple[str, str]:
    """URL, or PATTERN=URL."""
    pattern, equals, url = text.partition("=")
    if not equals or "://" in pattern:
        pattern, url = "*", text
    if "://" not in url:
        raise click.BadParameter(f"{text!r} is neither a URL nor PATTERN=URL, such as orders.*=amqp://localhost")
    return pattern, url


@click.command()
@target_argument
@click.option(
    "--to",
    "destinations",
    type=destination,
    metavar="[PATTERN=]URL",
    multiple=True,
    required=True,
    help="Broker for the topics that fit the pattern (default *); may be repeated, the first that fits wins.",
)
@click.option("--drain", is_flag=True, help="End when nothing is due.")
@click.option("--batch", type=click.IntRange(1, 1000), default=500, show_default=True, help="Messages per claim.")
@click.option(
    "--after-limit",
    type=click.Choice(["block", "dead_letter"]),
    default="block",
    show_default=True,
    help="What a message of a key becomes when no try is left: the key is blocked, or a tombstone goes out for it.",
)
@click.option(
    "--lease",
    type=duration,
    metavar="DURATION",
    default="60s",
    show_default=True,
    help="How long a dead relay's messages stay taken.",
)
@click.option(
    "--grace",
    type=duration,
    metavar="DURATION",
    default="30s",
    show_default=True,
    help="How long messages on their way may still be confirmed at a stop.",
)
@click.option(
    "--keep-sent",
    type=duration,
    metavar="DURATION",
    default="24h",
    show_default=True,
    help="How long to keep SENT rows.",
)
@click.option("--name", default="", help="Name of this relay in its rows; by default host, process and random.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def relay(
    target: str,
    url: str | None,
    destinations: tuple[tuple[str, str], ...],
    lease: timedelta,
    grace: timedelta,
    log_level: str,
    **settings: Any,
) -> None:
    """Carry the messages of the outbox to brokers until SIGTERM or Ctrl-C; a second signal cuts the grace short."""
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    loaded = load(target, url)
    code = Relay(
        loaded.queue,
        loaded.engine(),
        to=dict(destinations),
        lease=lease.total_seconds(),
        grace=grace.total_seconds(),
        **settings,
    ).run()
    sys.exit(code)
