"""The command `sa-taskqueue`: thin commands over the worker and over `sa_taskqueue.control`.

Exit codes: 0 done; 1 refused or not possible, with one sentence on standard error; 2 the command line is wrong; 75 from
a worker that asks to be started again.
"""

from __future__ import annotations

import click

from sa_taskqueue.cli.acting import cancel, prune, retry
from sa_taskqueue.cli.base import Commands
from sa_taskqueue.cli.demo import demo
from sa_taskqueue.cli.looking import check, list_tasks, status, version
from sa_taskqueue.cli.outbox import outbox
from sa_taskqueue.cli.relay import relay
from sa_taskqueue.cli.worker import worker

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Tasks as rows of your own database: run workers, look at tasks, intervene.

    TARGET is module:attribute of the TaskQueue, such as app:queue; the current folder is on the path. The engine comes
    from --url, else SA_TASKQUEUE_URL, else the attribute `engine` of the module.
    """


for _command in (cancel, check, demo, list_tasks, outbox, prune, relay, retry, status, version, worker):
    main.add_command(_command)
