"""Starting a server program of our own, as an unprivileged user where we are root, and stopping it again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.servers.base import Unavailable
from tests.support import eventually

STOP_TIMEOUT = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def unprivileged() -> dict[str, Any]:
    """Arguments for subprocess that run a program as `nobody` where we are root: servers refuse to run as root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class ServerProcess:
    """A folder of data, a log and a process, all gone after `stop`."""

    def __init__(self, name: str, *, stop_signal: int = signal.SIGTERM) -> None:
        self.name = name
        self._stop_signal = stop_signal
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"sa-taskqueue-{name}-"))
        self.log = self.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        owner = unprivileged()
        if owner:
            os.chown(self.folder, owner["user"], owner["group"])

    def prepare(self, command: Sequence[str | Path]) -> None:
        """Run a command to its end; Unavailable with its last lines if it fails."""
        done = subprocess.run(command, capture_output=True, cwd=self.folder, check=False, **unprivileged())
        if done.returncode:
            last = (done.stdout + done.stderr).decode(errors="replace")[-1500:]
            raise Unavailable(f"{self.name}: {command[0]} ended with {done.returncode}: {last}")

    def start(self, command: Sequence[str | Path], ready: Callable[[], bool], **options: Any) -> None:
        """Start the server and wait until `ready`."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
                **(options or unprivileged()),
            )
        eventually(lambda: self._ended() or ready(), timeout=120, message=f"{self.name} did not answer: {self.tail()}")
        if self._ended():
            raise Unavailable(f"{self.name} ended at once: {self.tail()}")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]

    def kill(self) -> None:
        """SIGKILL to the server and its children, as a machine that loses its power."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self._stop_signal)
            try:
                self._process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None
