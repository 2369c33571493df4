"""`python -m sa_taskqueue` is the command `sa-taskqueue`."""

from __future__ import annotations

from sa_taskqueue.cli import main

if __name__ == "__main__":
    main(prog_name="sa-taskqueue")
