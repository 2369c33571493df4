"""The files in which the processes tell what they do: one line of JSON per event, appended at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Teller:
    """Writes one process's file. A line is one ``write``: a kill leaves no half of it behind another's."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(self, event: str, **fields: Any) -> None:
        os.write(self._file, (json.dumps({"event": event, **fields}) + "\n").encode())


def told(path: Path, event: str) -> list[dict[str, Any]]:
    """The lines about ``event`` so far; a last line that is not complete yet is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [line for line in map(json.loads, lines) if line["event"] == event]
