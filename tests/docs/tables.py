"""Tables of the documentation that are made from the code. `python -m tests.docs.tables` writes them into the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from sa_taskqueue import exceptions
from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.mariadb import MariaDB
from sa_taskqueue.adapters.mssql import SQLServer
from sa_taskqueue.adapters.mysql import MySQL
from sa_taskqueue.adapters.oracle import Oracle
from sa_taskqueue.adapters.postgresql import PostgreSQL
from sa_taskqueue.adapters.sqlite import SQLite
from sa_taskqueue.cli import main
from sa_taskqueue.reservation import STRATEGIES
from sa_taskqueue.states import KEY_TRANSITIONS, MESSAGE_TRANSITIONS, TRANSITIONS
from tests.docs.pages import pages

_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def errors() -> str:
    """Each error class with its code and message, parents before children."""
    rows = [
        f"| `{kind.code}` | `{kind.__name__}` | `{kind.__base__.__name__}` | {_message(kind)} |"
        for kind in _descendants(exceptions.TaskQueueError)
        if kind.__base__ is not None
    ]
    return "\n".join(["| code | class | is a | message |", "|---|---|---|---|", *rows])


def transitions() -> str:
    return _moves(TRANSITIONS)


def _moves(transitions: Mapping[Any, frozenset[Any]]) -> str:
    rows = [
        f"| `{old}` | {', '.join(f'`{new}`' for new in type(old) if new in transitions[old]) or 'none'} |"
        for old in transitions
    ]
    return "\n".join(["| from | to |", "|---|---|", *rows])


def message_transitions() -> str:
    return _moves(MESSAGE_TRANSITIONS)


def key_transitions() -> str:
    return _moves(KEY_TRANSITIONS)


def commands() -> str:
    """Arguments and options of each command."""
    context = click.Context(
        main, info_name="sa-taskqueue", terminal_width=100, help_option_names=main.context_settings["help_option_names"]
    )
    parts = []
    for command_name in sorted(main.commands):
        command = main.commands[command_name]
        inner = click.Context(command, info_name=command_name, parent=context)
        parts.append(f"## {command_name}\n\n```text\n{command.get_help(inner)}\n```")
    return "\n\n".join(parts)


ADAPTERS: dict[str, type[Adapter]] = {
    "PostgreSQL 9.5 and later": PostgreSQL,
    "MySQL 8 and later": MySQL,
    "MariaDB 10.6 and later": MariaDB,
    "SQLite": SQLite,
    "Oracle 19c and later (pinned by golden SQL, not run in CI)": Oracle,
    "SQL Server 2016 and later (pinned by golden SQL, not run in CI)": SQLServer,
    "older servers, other databases": Adapter,
}


def reservations() -> str:
    """Which strategy works on which database, by the adapters' flags."""
    rows = [
        f"| {database} | {' | '.join('yes' if name in adapter.reservations else 'no' for name in STRATEGIES)} |"
        for database, adapter in ADAPTERS.items()
    ]
    return "\n".join(
        [f"| | {' | '.join(f'`{name}`' for name in STRATEGIES)} |", "|---" * (len(STRATEGIES) + 1) + "|", *rows]
    )


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "errors": errors,
    "key_transitions": key_transitions,
    "message_transitions": message_transitions,
    "reservations": reservations,
    "transitions": transitions,
}


def filled(text: str) -> str:
    """The page with each generated part made anew."""
    return _MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def marked(page: Path) -> list[str]:
    return [found[2] for found in _MARKED.finditer(page.read_text(encoding="utf-8"))]


def _descendants(kind: type[exceptions.TaskQueueError]) -> Iterator[type[exceptions.TaskQueueError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _descendants(child)


def _message(kind: type[exceptions.TaskQueueError]) -> str:
    text = " ".join((kind.__doc__ or "").split())
    return re.sub(r"\{(\w+)\}", r"*\1*", text).replace("|", r"\|").replace("<", r"\<")


if __name__ == "__main__":
    for each in pages():
        before = each.read_text(encoding="utf-8")
        after = filled(before)
        if after != before:
            each.write_text(after, encoding="utf-8")
            print(f"{each}: written")
